package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
)

// node is one server, with its batch queues. Renewals have a queue of their own, so that they never wait behind commands for
// which callers wait. Commands that replicas have to acknowledge have two more, so that a slow replica delays no others.
type node struct {
	commands      *batchQueue
	renewals      *batchQueue
	ackedCommands *batchQueue
	ackedRenewals *batchQueue
	pending       *Pending
	answers       atomic.Uint64 // of the server to batches and to commands on the direct path
}

// queueFor returns the queue of a command for which a caller waits.
func (n *node) queueFor(c *Command) *batchQueue {
	if c.Ack.Wanted() {
		return n.ackedCommands
	}
	return n.commands
}

// renewalQueueFor returns the queue of a renewal.
func (n *node) renewalQueueFor(c *Command) *batchQueue {
	if c.Ack.Wanted() {
		return n.ackedRenewals
	}
	return n.renewals
}

// Nodes finds the node of a key. Without a Cluster, all keys have the same node. In a Cluster there is one node for each
// master, because commands for different masters must not share a batch. A master that does not answer would delay the answers
// of the others. It is safe for concurrent use.
type Nodes struct {
	background *Background
	sendBatch  func([]*Command)
	endWait    endWait
	only       *node                // of all keys without a Cluster; in a Cluster, of keys whose master is not known
	cluster    *redis.ClusterClient // nil without a Cluster

	queries *keepalive.Operations // queries for the slots of the Cluster
	refresh refresh

	known    atomic.Bool // true if the ClusterClient knows the owners of the slots
	learning atomic.Bool // true while learnSlots runs
	byAddr   sync.Map    // of *node, by the address of the master
}

// newNodes returns the nodes of rdb. Their batch queues have these functions. It does no I/O. The caller must call Close.
func newNodes(rdb redis.UniversalClient, background *Background, sendBatch func([]*Command), endWait endWait) *Nodes {
	n := &Nodes{background: background, sendBatch: sendBatch, endWait: endWait, queries: keepalive.NewOperations()}
	n.only = n.newNode()
	n.cluster, _ = rdb.(*redis.ClusterClient)
	return n
}

// newNode returns a node with empty queues.
func (n *Nodes) newNode() *node {
	queue := func(maxSenders int) *batchQueue { return newBatchQueue(maxSenders, n.sendBatch, n.endWait) }
	return &node{
		commands: queue(maxCommandsInFlight), renewals: queue(maxRenewalsInFlight),
		ackedCommands: queue(maxCommandsInFlight), ackedRenewals: queue(maxRenewalsInFlight),
		pending: newPending(n.background),
	}
}

// answers returns a number that grows with the answers of the server that has the key.
func (n *Nodes) answers(key string) uint64 { return n.of(key).answers.Load() }

// of returns the node of a key. Until the slots of the Cluster are known, all keys have the same node.
func (n *Nodes) of(key string) *node {
	master := n.master(key)
	if master == nil {
		return n.only // if no master owns the slot, the error of the command says so
	}
	addr := master.Options().Addr
	if known, ok := n.byAddr.Load(addr); ok {
		return known.(*node)
	}
	known, _ := n.byAddr.LoadOrStore(addr, n.newNode())
	return known.(*node)
}

// master returns the client of the master that owns a key's slot. It returns nil without a Cluster, or if the master is not
// known. It does no I/O, because go-redis reads the slots when it first needs them, which may take long, and keeps them up to
// date from then on.
func (n *Nodes) master(key string) *redis.Client {
	if n.cluster == nil {
		return nil
	}
	if !n.known.Load() {
		if n.learning.CompareAndSwap(false, true) && n.queries.Start() {
			go n.learnSlots(key)
		}
		return nil
	}
	master, err := n.cluster.MasterForKey(context.Background(), key)
	if err != nil {
		return nil
	}
	return master
}

// rerouted returns true if the key of c now belongs to another master than when c was submitted. It returns false if the
// master was not known then.
func (n *Nodes) rerouted(c *Command) bool { return c.node != n.only && n.of(c.key()) != c.node }

// learnSlots has the ClusterClient read the slots. The caller must have called queries.Start and set learning.
func (n *Nodes) learnSlots(key string) {
	defer n.queries.Finish()
	defer n.learning.Store(false) // after a failure, the next command tries again
	n.background.Recovered(func() {
		_, err := n.cluster.MasterForKey(context.Background(), key)
		n.known.Store(err == nil)
	})
}

// Close stops queries to the Cluster. It waits for those in flight, but not longer than limit. Commands may still be sent
// afterwards.
func (n *Nodes) Close(limit time.Duration) {
	if n.queries.BeginClose() {
		n.queries.Finish()
	}
	keepalive.Pause(context.Background(), limit, n.queries.Finished, nil)
}

const (
	// maxCommandsInFlight is how many batches of commands may be in flight at a server. They are few because a command that
	// waits a moment for the next batch costs less than a system call of its own.
	maxCommandsInFlight = 4
	// maxRenewalsInFlight is the same for renewals. It is smaller because no caller waits for them.
	maxRenewalsInFlight = 2
	// MaxBatch bounds the commands of one batch, so that one batch does not hold a server or a connection for a long time.
	MaxBatch = 256
	// leastShare is up to how many commands are never divided among senders, because a batch costs a few commands by itself.
	leastShare = 8
	// StallTimeout is how long a batch may be in flight before its sender no longer counts, because on a dead connection
	// go-redis waits for its whole read timeout, and the commands in the queue must not wait with it.
	StallTimeout = 250 * time.Millisecond
	// longYield is longer than the callers that a batch has woken need to run. After a yield that took longer still, senders do not
	// yield for yieldRest times as long.
	longYield = 5 * time.Millisecond
	yieldRest = 100
)

// batchQueue sends commands in batches, with a bounded number of batches in flight (group commit). Commands that arrive
// meanwhile are queued, and the next free sender sends them together. So batches grow with the load. A command that finds
// a sender free does not wait for others.
type batchQueue struct {
	maxSenders int
	send       func([]*Command) // returns when all commands of the batch were answered
	endWait    endWait          // is called in each beat for each command that is queued or in flight
	start      time.Time        // zero point of yieldFrom
	yieldFrom  atomic.Int64     // until when senders do not yield, in nanoseconds since start

	mu sync.Mutex

	// Guarded by mu.
	queue    []*Command
	senders  map[*sender]struct{} // all that run, and the reserved one
	counting int                  // how many of them count: not those that were dropped as stalled
	inFlight int                  // commands in batches that are in flight
	beats    *time.Timer          // nil before the first
	beating  bool                 // true while the timer is set
	reserved *sender              // for a caller on the direct path; nil if there is none
	spare    *sender              // memory for the next reserved one; nil if that is in use
}

// sender is a goroutine that sends batches until the queue is empty.
type sender struct {
	// Guarded by the mutex of the queue.
	batch      []*Command    // that is in flight
	sentAt     time.Time     // of the last batch; zero before the first
	ackTimeout time.Duration // of its WAIT, which comes on top of StallTimeout
	dropped    bool          // true if it does not count, because a batch has stalled
}

// stalled returns true if the last batch was sent longer ago than StallTimeout and more.
func (s *sender) stalled(more time.Duration) bool {
	return !s.sentAt.IsZero() && time.Since(s.sentAt) >= StallTimeout+more
}

// endWait is [Executor.endWait].
type endWait = func(c *Command, stalled bool) (waits bool)

func newBatchQueue(maxSenders int, send func([]*Command), endWait endWait) *batchQueue {
	return &batchQueue{maxSenders: maxSenders, send: send, endWait: endWait, start: time.Now(), senders: make(map[*sender]struct{})}
}

// submit queues commands and starts a sender if one is free. It does not wait for answers.
func (q *batchQueue) submit(commands ...*Command) {
	q.mu.Lock()
	q.queue = append(q.queue, commands...)
	q.dispatchLocked()
	if !q.beating {
		q.beating = true
		if q.beats == nil {
			q.beats = time.AfterFunc(waitBeat, q.beat)
		} else {
			q.beats.Reset(waitBeat)
		}
	}
	q.mu.Unlock()
}

// dispatchLocked starts a sender if commands are queued and one more may run.
func (q *batchQueue) dispatchLocked() {
	if len(q.queue) > 0 && q.counting < q.maxSenders {
		s := new(sender)
		q.addLocked(s)
		go q.run(s, nil)
	}
}

func (q *batchQueue) addLocked(s *sender) {
	q.senders[s] = struct{}{}
	q.counting++
}

// removeLocked takes out a sender that has ended.
func (q *batchQueue) removeLocked(s *sender) {
	delete(q.senders, s)
	q.stopCountingLocked(s)
}

func (q *batchQueue) stopCountingLocked(s *sender) {
	if !s.dropped {
		s.dropped = true
		q.counting--
	}
}

// beat ends the waits that are over, and drops the senders that have stalled while commands are queued. The timer calls it every
// waitBeat while commands are queued, or in flight and waited for.
func (q *batchQueue) beat() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.beating = len(q.queue) > 0
	anyStalled := false // not one that was dropped: the queue waits for it no more
	for s := range q.senders {
		stalled := s.stalled(0)
		anyStalled = anyStalled || stalled && !s.dropped
		for _, c := range s.batch {
			waits := q.endWait(c, stalled)
			q.beating = q.beating || waits
		}
	}
	for _, c := range q.queue {
		q.endWait(c, anyStalled)
	}
	q.dropStalledLocked()
	if q.beating {
		q.beats.Reset(waitBeat)
	}
}

// tryReserve reserves the queue for a caller that sends a command itself. It returns false if another command is queued
// or in flight. If it returns true, the caller counts as a sender and must call unreserve.
func (q *batchQueue) tryReserve() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.reserved != nil || q.counting > 0 || len(q.queue) > 0 {
		return false
	}
	if q.spare == nil {
		q.spare = new(sender)
	}
	q.reserved, q.spare = q.spare, nil
	*q.reserved = sender{sentAt: time.Now()}
	q.addLocked(q.reserved)
	return true
}

// unreserve ends a reservation of tryReserve.
func (q *batchQueue) unreserve() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.removeLocked(q.reserved)
	q.reserved, q.spare = nil, q.reserved
	q.dispatchLocked()
}

// dropStalledLocked stops counting the senders whose batch has stalled, so that others may start, if commands are queued. A dropped
// sender ends when its batch is answered. A sender that has sent none stays: if the program is so busy that it does not run, another
// would not either, and if each was dropped before it runs, nothing would ever be sent.
func (q *batchQueue) dropStalledLocked() {
	if len(q.queue) == 0 {
		return
	}
	for s := range q.senders {
		if s.stalled(s.ackTimeout) {
			q.stopCountingLocked(s)
		}
	}
	q.dispatchLocked()
}

// run sends batches until the queue is empty, or until s was dropped.
//
// A hook of the user's client may end the goroutine by [runtime.Goexit], as t.FailNow does. Then the commands that are not answered yet
// fail, and another goroutine goes on as s, with the answers that are not delivered. Otherwise their callers would wait until they time
// out, and the queue would have a sender less for ever.
func (q *batchQueue) run(s *sender, answered []*Command) {
	ended := false
	defer func() {
		if ended {
			return
		}
		if s.batch != nil { // it ended while this batch was in flight, not while answers were delivered
			answered = s.batch
			for _, c := range answered {
				c.fail(errHookExited)
			}
			q.returned(s)
		}
		go q.run(s, answered)
	}()
	for {
		for len(answered) > 0 {
			c := answered[0]
			answered = answered[1:]
			c.deliver()
		}
		q.letOthersRun(runtime.Gosched)
		batch := q.nextBatch(s)
		if len(batch) == 0 {
			ended = true
			return
		}
		q.send(batch)
		q.returned(s)
		answered = batch
	}
}

// errHookExited is the error of commands during which a hook of the user's client has ended the goroutine.
var errHookExited = fmt.Errorf("%w of the Redis client: it has called runtime.Goexit", ErrPanic)

// returned takes note that the batch of s is in flight no more. It must be called before the answers are delivered: after that, what
// beat sends on their channels would end the waits of other commands.
func (q *batchQueue) returned(s *sender) {
	q.mu.Lock()
	q.inFlight -= len(s.batch)
	s.batch = nil
	q.mu.Unlock()
}

// letOthersRun calls yield, which lets the goroutines that can run go first, because the answers to one batch wake many callers, whose
// next commands then share the next batch. In a program that keeps all its processors busy, the sender comes after everything else that
// can run. So after a long yield, senders do not yield for a while.
func (q *batchQueue) letOthersRun(yield func()) {
	began := time.Since(q.start)
	if began < time.Duration(q.yieldFrom.Load()) {
		return
	}
	yield()
	if took := time.Since(q.start) - began; took > longYield {
		q.yieldFrom.Store(int64(began + yieldRest*took))
	}
}

// nextBatch takes the next batch out of the queue, without the commands that were withdrawn. If it returns an empty batch,
// the sender must end: the queue is empty, or s was dropped as stalled.
func (q *batchQueue) nextBatch(s *sender) []*Command {
	q.mu.Lock()
	defer q.mu.Unlock()
	if s.dropped {
		q.removeLocked(s)
		return nil
	}
	most := q.shareLocked()
	n, batch := 0, make([]*Command, 0, min(len(q.queue), most))
	for ; n < len(q.queue) && len(batch) < most; n++ {
		if q.queue[n].state.CompareAndSwap(commandQueued, commandSent) {
			batch = append(batch, q.queue[n])
		}
	}
	q.queue = slices.Delete(q.queue, 0, n)
	if len(batch) == 0 {
		q.removeLocked(s)
		return nil
	}
	s.batch = batch
	q.inFlight += len(batch)
	s.sentAt, s.ackTimeout = time.Now(), strictestAck(batch).Timeout
	q.dispatchLocked() // if the queue was longer than a batch, another sender may take the rest
	return batch
}

// shareLocked returns how many commands the next batch may have: all that are queued if no batch is in flight, and otherwise the part of
// one sender in what is queued and in flight. Because if each sender took all that is queued, some batches would be far larger than others,
// and the server would have nothing to do while the callers of a large batch run.
func (q *batchQueue) shareLocked() int {
	if q.inFlight == 0 {
		return MaxBatch
	}
	return min(MaxBatch, max(leastShare, (len(q.queue)+q.inFlight+q.maxSenders-1)/q.maxSenders))
}

const (
	// fastRTTLimit is the longest round trip after which the next command may be sent on its caller's goroutine.
	fastRTTLimit = 5 * time.Millisecond
	// directTimeout is the read timeout on the direct path. A command that exceeds it is sent once more through the batch
	// queue, where its caller can return before the answer. Not shorter, because timers that fire often disturb round trips.
	directTimeout = 100 * time.Millisecond
	// directConnectTimeout bounds the wait for a connection, with the same consequence. The sum of both timeouts is how
	// long after the cancellation of its context a command on the direct path may return.
	directConnectTimeout = 100 * time.Millisecond
	// fastRTTMemory is for how long one round trip within fastRTTLimit opens the direct path.
	fastRTTMemory = time.Second
	// directConnRest is after how long without a command the direct path gives its connection back to the pool, which looks whether
	// the server has closed it before the next use.
	directConnRest = 10 * time.Millisecond
	// directViewTTL limits the age of the view of the user's client on the direct path, because the user may add hooks at any time,
	// and the view has only those that were there when it was made.
	directViewTTL = time.Second
	// minPoolSize is the least size of a pool from which the direct path keeps a connection.
	minPoolSize = 4
)

// directPath sends a command on its caller's goroutine if no other command is queued or in flight.
//
// Because the hand-over to a sender goroutine and back costs more than all else that a lock adds to a round trip. But a caller
// on the direct path cannot return before the answer. So only a server that has answered quickly lately is used this way. A
// Cluster is not, because go-redis may send one command to several masters one after the other.
//
// Commands that follow each other within directConnRest use one connection, because to take it from the pool and give it back
// costs two fifths of the allocations of a lock, and a system call. connectDeadline gives it back when there is no next command.
type directPath struct {
	rdb       *redis.Client // nil if there is no direct path
	start     time.Time     // zero point of now
	fastUntil atomic.Int64  // until when the direct path is open, in nanoseconds by now

	deadline connectDeadline // of the command on the direct path

	// Used between watch and unwatch of deadline only, or under its mutex while no command is watched.
	view     *redis.Conn   // sends commands with the hooks of rdb; nil before the first
	made     time.Duration // when the view was made, by now
	short    *redis.Client // has the connections, and no hooks
	lastUsed time.Duration // when the view was used last, by now

	// kept is the connection that commands use; nil if each has one of its own. It is not looked at between two commands, as one in the
	// pool is, so it has to be given back after a command that has failed. Atomic because a hook may send something at any time.
	kept atomic.Pointer[redis.Conn]
}

// sendingClient is a client, a view of one, or one of its connections.
type sendingClient interface {
	processor
	piper
}

// processor sends a single command.
type processor interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// now returns the time since start. It may stop while the host is suspended. Not the clock of leases, because to read it is a
// system call.
func (p *directPath) now() time.Duration { return time.Since(p.start) }

// observeRTT records the round trip of a command that was sent at sentAt. A round trip within fastRTTLimit opens the direct
// path for fastRTTMemory. A longer one, or none, closes the path.
func (p *directPath) observeRTT(sentAt time.Duration, replied bool) {
	if p.rdb == nil {
		return
	}
	now, until := p.now(), time.Duration(0)
	if replied && now-sentAt <= fastRTTLimit {
		until = now + fastRTTMemory
	}
	p.fastUntil.Store(int64(until))
}

// tryReserve decides whether c may be sent on the caller's goroutine now. If it returns true, the batch queue of c is reserved
// and the caller must call unreserve on that queue. It returns false if
//   - c waits for replicas, or for the others of a batch group;
//   - the server has not answered within fastRTTLimit lately;
//   - other commands are queued or in flight;
//   - the context has ended, or its deadline is nearer than the timeouts of the direct path.
func (p *directPath) tryReserve(c *Command, now time.Duration) (ok bool) {
	if p.rdb == nil || c.Ack.Wanted() {
		return false
	}
	if now >= time.Duration(p.fastUntil.Load()) || !c.node.commands.tryReserve() {
		return false
	}
	defer func() {
		if !ok { // also if the caller's context panics
			c.node.commands.unreserve()
		}
	}()
	end, ends := c.ctx.Deadline()
	member, grouped := c.ctx.Value(groupMemberKey{}).(*groupMember)
	return (!ends || time.Until(end) >= directConnectTimeout+directTimeout) && !(grouped && member.pending()) && c.ctx.Err() == nil
}

// client returns a view of the user's client with a read timeout of at most directTimeout. It makes a new view each directViewTTL.
func (p *directPath) client(now time.Duration, die func(cause any)) processor {
	switch options := p.rdb.Options(); {
	case p.view == nil || now-p.made >= directViewTTL:
		p.giveBack()
		timeout := directTimeout
		if options.ReadTimeout > 0 {
			timeout = min(timeout, options.ReadTimeout)
		}
		p.short, p.made = p.rdb.WithTimeout(timeout), now
		p.view = redirect(p.rdb, p.short, &p.kept, die)
	case now-p.lastUsed >= directConnRest:
		p.giveBack()
	case p.kept.Load() == nil && options.PoolSize >= minPoolSize && (options.MaxActiveConns == 0 || options.MaxActiveConns >= minPoolSize):
		p.kept.Store(p.short.Conn())
	}
	p.lastUsed = now
	return p.view
}

// giveBack gives the connection back to the pool, if one is kept.
func (p *directPath) giveBack() {
	if kept := p.kept.Swap(nil); kept != nil {
		_ = kept.Close()
	}
}

// sendDirect sends a command on the direct path. The caller must have called tryReserve with true as its result; sendDirect
// calls unreserve.
func (e *Executor) sendDirect(c *Command, sentAt time.Duration) {
	defer c.node.commands.unreserve()
	e.sendWithConnectDeadline(c, sentAt)
	e.noteReply(c, sentAt)
	e.judge(c)
}

// sendWithConnectDeadline sends a command with a context that ends if there is no connection in time.
func (e *Executor) sendWithConnectDeadline(c *Command, now time.Duration) {
	defer catch(c)
	e.direct.deadline.watch(c)
	defer e.direct.deadline.unwatch(c)
	returned := false
	defer func() {
		if !returned || c.Err != nil {
			e.direct.giveBack() // the connection may be broken
		}
	}()
	sendSingle(e.direct.client(now, e.die), c)
	returned = true
}

// timedOut returns true if err is a timeout of the connect deadline or of a connection. It returns false for the deadline of
// a context.
func timedOut(err error) bool {
	if err == nil {
		return false
	}
	var timeout net.Error
	return errors.Is(err, errConnectTimeout) || errors.As(err, &timeout) && timeout.Timeout() && !errors.Is(err, context.DeadlineExceeded)
}

// errConnectTimeout is the error of a connectContext: a command on the direct path got no connection within
// directConnectTimeout.
var errConnectTimeout = errors.New("no connection soon")

// connectContext is the context of a command on the direct path. It has the values and the deadline of the caller's context. It
// ends when connectDeadline expires, and only then, because go-redis retries the dial for as long as its own limits allow,
// whatever deadline the caller's context has.
type connectContext struct {
	context.Context
	done <-chan struct{}
}

// Done returns the channel that connectDeadline closes.
func (c *connectContext) Done() <-chan struct{} { return c.done }

// Err returns errConnectTimeout after connectDeadline has expired, nil before.
func (c *connectContext) Err() error {
	select {
	case <-c.done:
		return errConnectTimeout
	default:
		return nil
	}
}

// connectDeadline ends the context of the one command on the direct path after directConnectTimeout. The zero value is
// ready to use.
//
// Not a timer for each command, because setting and stopping a timer wakes threads of the runtime and costs a twentieth of the
// command's time. So one timer serves all commands:
//
//  1. watch sets the timer for the first command, and unwatch leaves it set.
//  2. When the timer fires, checkExpired looks at the command that is watched then.
//  3. If that command has time left, the timer is set for the rest. If no command is watched, the timer is left unset
//     until the next one.
type connectDeadline struct {
	mu sync.Mutex

	// Guarded by mu.
	done  chan struct{} // of the present command; the next one gets it too, unless it was closed
	since time.Time     // when watch was called for the present command; zero if there is none
	timer *time.Timer   // nil before the first command
	armed bool          // true if the timer will fire
	idle  func()        // called when the timer fires while there is no command; may be nil
}

// watch sets the deadline of c by putting a connectContext in place of its context. The caller must call unwatch, and must
// not watch another command before.
func (d *connectDeadline) watch(c *Command) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done == nil {
		d.done = make(chan struct{})
	}
	if d.since = time.Now(); !d.armed {
		d.armLocked(directConnectTimeout)
	}
	c.connectCtx = connectContext{c.ctx, d.done}
	c.ctx = &c.connectCtx
}

// unwatch removes the deadline of c, and restores its context.
func (d *connectDeadline) unwatch(c *Command) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.since = time.Time{}
	c.ctx = c.connectCtx.Context
}

// armLocked sets the timer.
func (d *connectDeadline) armLocked(in time.Duration) {
	d.armed = true
	if d.timer == nil {
		d.timer = time.AfterFunc(in, d.checkExpired)
		return
	}
	d.timer.Reset(in)
}

// rest calls idle, unless there is a command: then the timer does it later.
func (d *connectDeadline) rest() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.restLocked()
}

// restLocked is rest for a caller that holds the mutex. It returns false if there is a command.
func (d *connectDeadline) restLocked() bool {
	if !d.since.IsZero() {
		return false
	}
	if d.idle != nil {
		d.idle()
	}
	return true
}

// checkExpired ends the context of the present command if its deadline has passed, and otherwise sets the timer for the rest.
// If there is no command, it calls idle.
func (d *connectDeadline) checkExpired() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.armed = false
	if d.restLocked() {
		return
	}
	if left := directConnectTimeout - time.Since(d.since); left > 0 {
		d.armLocked(left)
		return
	}
	close(d.done)
	d.done = nil
}

// maxReadTimeout bounds how long go-redis waits for a reply to commands of this package. So a reply that gets lost on a connection that
// stays open is noticed while callers have time for another try, most of whom give up after 5 s. Until 9.21, it was the default of go-redis,
// which is 5 s now.
const maxReadTimeout = 3 * time.Second

// readTimeout returns the read timeout for commands of this package, which is that of the user's client up to maxReadTimeout. It is not
// positive if there is none, as in the options.
func readTimeout(o *redis.Options) time.Duration { return min(o.ReadTimeout, maxReadTimeout) }

// bare returns a copy of rdb without hooks.
func bare(rdb *redis.Client) *redis.Client {
	o := rdb.Options()
	copied := rdb.WithTimeout(readTimeout(o))
	copied.Options().WriteTimeout = o.WriteTimeout // the options are the copy's own
	return copied
}

// redirect returns a view of rdb that sends through bare, a copy of rdb with the same pool and without hooks. If kept is not nil, it sends
// on the connection there while there is one. It calls die, which must not return, if a reply may be unread. It may be used concurrently.
//
// It is a [redis.Conn] because the copies that [redis.Client.WithTimeout] makes have no hooks, but a Conn has the hooks of its
// client. The innermost hook of this Conn sends everything. So the Conn itself never takes a connection from the pool.
func redirect(rdb, bare *redis.Client, kept *atomic.Pointer[redis.Conn], die func(cause any)) *redis.Conn {
	view := rdb.Conn()
	view.AddHook(redirectHook{bare, kept, die})
	return view
}

// redirectHook is a [redis.Hook] that sends commands through another client. It has to be the last hook that is added, because
// the hooks behind it are not called.
//
// It ends the process if go-redis does not return from a command that it has written: user code that runs inside it, such as a handler of
// push notifications or a net.Conn, has panicked, or has called [runtime.Goexit]. go-redis takes the connection for a sound one then, and
// puts it back into the pool, where the next command would read the reply that is still to come: another one's token, for instance. The hook
// does so itself, because a hook of the user's around it may recover a panic.
type redirectHook struct {
	bare *redis.Client
	kept *atomic.Pointer[redis.Conn]
	die  func(cause any)
}

// DialHook changes nothing, because the client of the hook never dials.
func (redirectHook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook sends a command.
func (h redirectHook) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return h.send(func(rdb sendingClient) error { return rdb.Process(ctx, cmd) }, cmd)
	}
}

// ProcessPipelineHook sends a pipeline.
func (h redirectHook) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return h.send(func(rdb sendingClient) error {
			pipe := rdb.Pipeline()
			if err := pipe.BatchProcess(ctx, cmds...); err != nil {
				return err
			}
			_, err := pipe.Exec(ctx)
			return err
		}, cmds...)
	}
}

// send calls do, which sends commands with the client or the connection that it gets.
func (h redirectHook) send(do func(sendingClient) error, cmds ...redis.Cmder) error {
	var rdb sendingClient = h.bare
	if h.kept != nil {
		if conn := h.kept.Load(); conn != nil {
			rdb = conn
		}
	}
	before, returned := timesWritten(cmds), false
	defer func() {
		if !returned && (before == notKnown || timesWritten(cmds) != before) {
			h.die(recover())
		}
	}()
	err := do(rdb)
	returned = true
	return err
}

// notKnown is returned by timesWritten.
const notKnown = -1

// timesWritten returns how often the scripts among cmds were written to a connection. ASKING and WAIT, which this package sends before and
// behind a script, are written with it. It is notKnown if there is no script, or a command that a hook has made.
func timesWritten(cmds []redis.Cmder) int {
	times, scripts := 0, 0
	for _, cmd := range cmds {
		if _, own := cmd.(*singleTryCmd); !own {
			return notKnown
		}
		if args := cmd.Args(); len(args) >= firstKey {
			if keys, ok := args[firstKey-1].(*keyCount); ok {
				times += int(keys.written)
				scripts++
			}
		}
	}
	if scripts == 0 {
		return notKnown
	}
	return times
}

// die ends the process by a panic. Not on the goroutine that calls it, whose deferred functions would go on sending, but the stack of that one
// is shown with the others, and tells where the user's code is. cause is nil of [runtime.Goexit].
//
// Until the panic, others may get the connection. So it does as little as it can, and calls no method of the cause, which may block.
func die(cause any) {
	debug.SetTraceback("all")
	text := "runtime.Goexit"
	switch cause := cause.(type) {
	case nil:
	case string:
		text = cause
	case runtime.Error:
		text = cause.Error()
	default:
		text = fmt.Sprintf("a panic with a %T", cause)
	}
	go panic("holdfast: code that go-redis has run while it used a connection did not return, and a reply may be unread: " + text)
	select {}
}
