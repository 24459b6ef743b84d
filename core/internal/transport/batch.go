package transport

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	// maxCommandsInFlight is how many batches of commands may be in flight at a server. Why so few: a command that waits a
	// moment for the next batch costs less than a system call of its own.
	maxCommandsInFlight = 4
	// maxRenewalsInFlight is the same for renewals. It is smaller because no caller waits for them.
	maxRenewalsInFlight = 2
	// MaxBatch bounds the commands of one batch, so that one batch does not hold a server or a connection for long.
	MaxBatch = 256
	// StallTimeout is how long a batch may be in flight before its sender no longer counts. Why: on a dead connection
	// go-redis waits for its whole read timeout, and the commands in the queue must not wait with it.
	StallTimeout = 250 * time.Millisecond
)

// batchQueue sends commands in batches, with a bounded number of batches in flight (group commit). Commands that arrive
// meanwhile are queued, and the next free sender sends them together. So batches grow with the load. A command that finds
// the queue empty and a sender free never waits.
type batchQueue struct {
	maxSenders int
	send       func([]*Command) // returns when all commands of the batch were answered

	mu sync.Mutex

	// Guarded by mu.
	queue      []*Command
	senders    map[*sender]struct{} // those that count: in flight, and not stalled
	stallTimer *time.Timer          // set while commands are queued and all senders are busy
	reserved   *sender              // for a caller on the direct path, see direct.go; nil if there is none
	spare      *sender              // memory for the next reserved one; nil if that is in use
}

// sender is a goroutine that sends batches until the queue is empty.
type sender struct {
	// Of the present batch. Guarded by the mutex of the queue.
	sentAt     time.Time
	ackTimeout time.Duration // of WAIT, which comes on top of StallTimeout
}

func newBatchQueue(maxSenders int, send func([]*Command)) *batchQueue {
	return &batchQueue{maxSenders: maxSenders, send: send, senders: make(map[*sender]struct{})}
}

// submit queues commands and starts a sender if one is free. It does not wait for answers.
func (q *batchQueue) submit(commands ...*Command) {
	q.mu.Lock()
	q.queue = append(q.queue, commands...)
	q.dispatchLocked()
	q.mu.Unlock()
}

// dispatchLocked starts a sender if commands are queued and one more may run. Otherwise it sets the stall timer.
func (q *batchQueue) dispatchLocked() {
	switch {
	case len(q.queue) == 0:
	case len(q.senders) < q.maxSenders:
		s := &sender{sentAt: time.Now()}
		q.senders[s] = struct{}{}
		go q.run(s)
	case q.stallTimer == nil:
		q.stallTimer = time.AfterFunc(StallTimeout, q.dropStalled)
	}
}

// tryReserve reserves the queue for a caller that sends a command itself. It returns false if another command is queued
// or in flight. If it returns true, the caller counts as a sender and must call unreserve.
func (q *batchQueue) tryReserve() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.reserved != nil || len(q.senders) > 0 || len(q.queue) > 0 {
		return false
	}
	if q.spare == nil {
		q.spare = new(sender)
	}
	q.reserved, q.spare = q.spare, nil
	q.reserved.sentAt, q.reserved.ackTimeout = time.Now(), 0
	q.senders[q.reserved] = struct{}{}
	return true
}

// unreserve ends a reservation of tryReserve.
func (q *batchQueue) unreserve() {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.senders, q.reserved)
	q.reserved, q.spare = nil, q.reserved
	q.dispatchLocked()
}

// dropStalled stops counting the senders whose batch has stalled, so that others may start. A dropped sender ends when its
// batch is answered.
func (q *batchQueue) dropStalled() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stallTimer = nil
	for s := range q.senders {
		if time.Since(s.sentAt) >= StallTimeout+s.ackTimeout {
			delete(q.senders, s)
		}
	}
	q.dispatchLocked()
}

// run sends batches until the queue is empty, or until s was dropped.
func (q *batchQueue) run(s *sender) {
	for {
		batch := q.nextBatch(s)
		if len(batch) == 0 {
			return
		}
		q.send(batch)
	}
}

// nextBatch takes the next batch out of the queue, without the commands that were withdrawn. If it returns an empty batch,
// the sender must end: the queue is empty, or s was dropped as stalled.
func (q *batchQueue) nextBatch(s *sender) []*Command {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, counts := q.senders[s]; !counts {
		return nil
	}
	n := 0
	var batch []*Command
	for ; n < len(q.queue) && len(batch) < MaxBatch; n++ {
		if q.queue[n].state.CompareAndSwap(commandQueued, commandSent) {
			batch = append(batch, q.queue[n])
		}
	}
	q.queue = slices.Delete(q.queue, 0, n)
	if len(batch) == 0 {
		delete(q.senders, s)
		return nil
	}
	s.sentAt, s.ackTimeout = time.Now(), strictestAck(batch).Timeout
	q.dispatchLocked() // if the queue was longer than a batch, another sender may take the rest
	return batch
}

// batchGroup sends the first command of each of n goroutines in one batch, once every member has submitted a command or
// finished, in the order of the members. Later commands of a member are not grouped.
type batchGroup struct {
	mu sync.Mutex

	// Guarded by mu.
	remaining int // members that have neither submitted a command nor finished
	members   []groupMember
}

// groupMember is one goroutine of a batchGroup. The context of the goroutine carries it. Its fields are guarded by the mutex of
// the group.
type groupMember struct {
	group     *batchGroup
	submitted bool // true once the member has submitted or finished
	queue     *batchQueue
	command   *Command // that waits for the other members; nil if there is none
}

type groupMemberKey struct{}

// submit queues a command: with the batch group if ctx carries a groupMember, at once otherwise.
func submit(ctx context.Context, q *batchQueue, c *Command) {
	if m, _ := ctx.Value(groupMemberKey{}).(*groupMember); m != nil {
		m.submit(q, c)
	} else {
		q.submit(c)
	}
}

// submit queues the member's first command together with those of the group, and any later one at once.
func (m *groupMember) submit(q *batchQueue, c *Command) {
	m.group.mu.Lock()
	defer m.group.mu.Unlock()
	if m.submitted { // a later command: the first was answered, or not in time
		q.submit(c)
		return
	}
	m.queue, m.command = q, c
	m.submitLocked()
}

// finish lets the group send without this member. It does nothing if the member has submitted a command.
func (m *groupMember) finish() {
	m.group.mu.Lock()
	defer m.group.mu.Unlock()
	m.submitLocked()
}

// submitLocked records that the member is done. The last member to be done sends for all. The caller must hold the mutex of
// the group.
func (m *groupMember) submitLocked() {
	if m.submitted {
		return
	}
	m.submitted = true
	if m.group.remaining--; m.group.remaining > 0 {
		return
	}
	batches := make(map[*batchQueue][]*Command, 1)
	for i := range m.group.members {
		if member := &m.group.members[i]; member.command != nil {
			batches[member.queue] = append(batches[member.queue], member.command)
			member.queue, member.command = nil, nil
		}
	}
	for q, commands := range batches {
		q.submit(commands...)
	}
}

// DoGrouped calls do n times concurrently and returns the errors by index. The first command that each call sends with its
// context leaves in one batch with those of the others, in the order of i. If a call panics, DoGrouped waits for the others, and
// then panics with the same value on the caller's goroutine.
func DoGrouped(ctx context.Context, n int, do func(ctx context.Context, i int) error) []error {
	errs := make([]error, n)
	if n == 1 {
		errs[0] = do(ctx, 0)
		return errs
	}
	LeaveGroup(ctx) // otherwise the outer group would wait until the inner one has been answered
	g := &batchGroup{remaining: n, members: make([]groupMember, n)}
	panics := make(chan any, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			m := &g.members[i]
			m.group = g
			defer m.finish()
			defer func() {
				if p := recover(); p != nil {
					panics <- p
				}
			}()
			errs[i] = do(context.WithValue(ctx, groupMemberKey{}, m), i)
		})
	}
	all.Wait()
	select {
	case p := <-panics:
		panic(p)
	default:
		return errs
	}
}

// LeaveGroup lets the batch group of which ctx is a member send without it. Its commands are sent at once from then on.
func LeaveGroup(ctx context.Context) {
	if m, _ := ctx.Value(groupMemberKey{}).(*groupMember); m != nil {
		m.finish()
	}
}

// WithoutEnd returns ctx without its end, its deadline and its membership of a batch group.
//
// Why: a Redlock sends several commands for one call. The end of ctx must not keep them from the servers that are asked
// last. And a batch group takes only one command of each member.
func WithoutEnd(ctx context.Context) context.Context {
	if m, _ := ctx.Value(groupMemberKey{}).(*groupMember); m != nil {
		m.finish()
		ctx = context.WithValue(ctx, groupMemberKey{}, (*groupMember)(nil))
	}
	return context.WithoutCancel(ctx)
}
