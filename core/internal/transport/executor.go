package transport

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
)

// Executor sends all lock commands to Redis. It returns soon after the caller's context ends, whatever the connection does,
// because go-redis does not interrupt a read in flight, and by default ignores deadlines too. Commands of concurrent goroutines
// share round trips, and a single command is mostly sent on its caller's goroutine, see paths.go. It is safe for concurrent
// use.
type Executor struct {
	Client     redis.UniversalClient // of the user
	background Background
	stop       <-chan struct{} // closed when no caller waits for answers any more

	// OnReply is called when a server has answered, which is often. It must not block. It may be nil, and must be set
	// before the first command.
	OnReply func()
	// OnLasting is called with each error that waiting does not mend. It must not block. It may be nil, and must be set before
	// the first command.
	OnLasting func(*LastingError)
	// Prefix begins the keys of locks, for advice about rights. It must be set before the first command.
	Prefix string

	masterSeen atomic.Bool // see onlyReplica

	Nodes *Nodes

	direct directPath
	shared atomic.Pointer[sharedView] // for batches; nil before the first, and always in a Cluster

	die func(cause any) // see watched

	answers sync.Pool // of chan bool, see Command; one pool per client, because a bubble of testing/synctest allows no sharing with another
}

// newAnswers returns a channel for Command.answered.
func newAnswers() any { return make(chan bool, 2) }

// NewExecutor returns an executor that sends to rdb. Waiting callers return when stop is closed; nil never is. The direct
// path is not in use until UseDirectPath is called.
func NewExecutor(rdb redis.UniversalClient, background Background, stop <-chan struct{}) *Executor {
	e := &Executor{Client: rdb, background: background, stop: stop, answers: sync.Pool{New: newAnswers}, die: die}
	e.direct.start = time.Now()
	e.direct.deadline.idle = e.direct.giveBack
	e.Nodes = newNodes(rdb, &e.background, e.sendBatch, e.endWait)
	return e
}

// Do runs a script and returns its reply, or an error for [Classify]. Hooks of the user's client have to return by
// themselves. If one panics, that is the error.
//
// If ctx ends, Do returns ErrNotSent if the command was withdrawn in time, or ErrNotAnswered if it may still be executed. It
// returns at once, or on the direct path after directConnectTimeout and directTimeout at most. The same happens after
// AnswerTimeout, whether ctx has ended or not.
func (e *Executor) Do(ctx context.Context, s *Script, keys []string, args ...any) (any, error) {
	return e.DoWithAck(ctx, Ack{}, s, keys, args...)
}

// DoWithAck is Do for a script whose success counts only if replicas acknowledge it. It returns an AckError if too few do
// in time. The time for them comes on top of AnswerTimeout.
func (e *Executor) DoWithAck(ctx context.Context, a Ack, s *Script, keys []string, args ...any) (any, error) {
	c := NewCommand(s, keys, args...)
	c.Ack = a
	if err := e.Run(ctx, c); err != nil {
		return nil, err
	}
	return c.Reply, nil
}

// Run is Do for a command. If Run returns nil, the command has the reply. If it returns ErrNotAnswered, the executor may
// still write to the command, so the caller must not read it.
//
// A command that times out on the direct path is sent once more through its batch queue. Then Repeated is true if the first
// one may have been executed.
func (e *Executor) Run(ctx context.Context, c *Command) error {
	c.ctx = ctx
	c.node = e.Nodes.of(c.key())
	now := e.direct.now()
	if !e.direct.tryReserve(c, now) {
		return e.doQueued(ctx, c, now)
	}
	if e.sendDirect(c, now); !timedOut(c.Err) {
		return c.timeoutError(ctx)
	}
	first := c.keys.written > 0
	switch {
	case ctx.Err() != nil && first:
		return ErrNotAnswered // a DetachedContext gets no ReleaseGrace here: the direct path has taken longer
	case ctx.Err() != nil:
		return ErrNotSent
	}
	c.Repeated, c.keys.written = first, 0
	err := e.doQueued(ctx, c, e.direct.now())
	if err == ErrNotSent && first {
		err = ErrNotAnswered
	}
	return err
}

// doQueued sends a command through its batch queue, and waits for the answer. It returns the same errors as Do.
func (e *Executor) doQueued(ctx context.Context, c *Command, now time.Duration) error {
	c.answered, _ = e.answers.Get().(chan bool)
	timeout := AnswerTimeout + c.Ack.Timeout
	_, detached := ctx.(*DetachedContext)
	if detached {
		timeout = FirstAnswerTimeout
	}
	c.waitUntil = now + timeout
	submit(ctx, c.node.queueFor(c), c)
	switch {
	case awaitReply(ctx, c, detached):
		e.answers.Put(c.answered) // an end of the wait would have come before the answer
	case c.withdraw():
		return ErrNotSent
	case !c.hasReply():
		return ErrNotAnswered
	}
	return c.timeoutError(ctx)
}

// AnswerTimeout bounds the wait for the answer to a command, whatever the caller's context allows, because go-redis may take
// far longer. It dials five times if no connection can be made.
const AnswerTimeout = 5 * time.Second

// awaitReply waits for the answer to c. It returns true when there is one, and false if none comes in time, which is when
//   - ctx has ended; for a DetachedContext, ReleaseGrace later;
//   - AnswerTimeout and the timeout for replicas have passed; for a DetachedContext, FirstAnswerTimeout;
//   - the executor was stopped;
//   - the key belongs to another master than before, which is looked for in a Cluster once a batch has stalled.
//
// All but the first are found by endWait.
func awaitReply(ctx context.Context, c *Command, detached bool) bool {
	select {
	case answered := <-c.answered:
		return answered
	case <-ctx.Done():
	}
	if !detached {
		return false
	}
	grace := time.NewTimer(ReleaseGrace)
	defer grace.Stop()
	select {
	case answered := <-c.answered:
		return answered
	case <-grace.C:
		return false
	}
}

// waitBeat is how often a queue looks for waits that are over, see batchQueue.beat. Not a timer for each wait, because nearly all waits
// end by an answer long before, and a timer in the select of each costs more than all else that a wait does. So a wait may last longer
// than its timeout by as much.
const waitBeat = 50 * time.Millisecond

// endWait ends the wait for a command if it is over. It returns true if somebody waits further. The batch of a stalled command is in
// flight for longer than StallTimeout, or one before it. The mutex of its queue is held.
func (e *Executor) endWait(c *Command, stalled bool) bool {
	if c.waitUntil == 0 {
		return false
	}
	over := e.direct.now() >= c.waitUntil || keepalive.Closed(e.stop)
	if !over && stalled && e.InCluster() {
		e.Nodes.RequestRefresh() // the command may have been sent to a master that is down
		over = e.Nodes.rerouted(c)
	}
	if over {
		c.waitUntil = 0
		c.answered <- false
	}
	return !over
}

// SubmitRenewals sends renewals without waiting for answers. Each command must have a function Done. It is called on a
// goroutine of the executor when the outcome is known.
func (e *Executor) SubmitRenewals(renewals []*Command) {
	batches := make(map[*batchQueue][]*Command, 1)
	for _, c := range renewals {
		c.node = e.Nodes.of(c.key())
		q := c.node.renewalQueueFor(c)
		batches[q] = append(batches[q], c)
	}
	for q, batch := range batches {
		q.submit(batch...)
	}
}

// sendBatch sends a batch and sets reply or error of each of its commands.
//
// An answer does not count if the key belongs to another master by then, because a master that was frozen until its replica was
// promoted executes the commands that have waited for it. It does not know yet that its writes are lost.
func (e *Executor) sendBatch(batch []*Command) {
	sentAt := e.direct.now()
	e.sendRecovered(batch)
	e.noteReply(batch[0], sentAt)
	for _, c := range batch {
		if suggestsMove(c.Err) {
			e.Nodes.RequestRefresh()
		}
		if c.Err == nil && e.Nodes.rerouted(c) {
			c.Reply, c.Err = nil, ErrNotAnswered
		}
		e.judge(c)
	}
}

// noteReply takes note of whether the server has answered a command that was sent at sentAt, or its batch.
func (e *Executor) noteReply(c *Command, sentAt time.Duration) {
	replied := c.Err == nil || Replied(c.Err) // an error of the server is a reply too
	if !c.Ack.Wanted() {
		e.direct.observeRTT(sentAt, replied)
	}
	if !replied {
		return
	}
	c.node.answers.Add(1)
	if e.OnReply != nil {
		e.OnReply()
	}
}

// judge completes the error of a command with what the executor knows of the client and the server, and notes what a success
// says of the server.
func (e *Executor) judge(c *Command) {
	if c.Err == nil {
		if c.script.writes && !e.masterSeen.Load() && Succeeded(c.Reply) {
			e.SeenMaster()
		}
		return
	}
	c.Err = e.lasting(c.Err, c.names())
	var lasting *LastingError
	if e.OnLasting != nil && errors.As(c.Err, &lasting) {
		e.OnLasting(lasting)
	}
}

// sendRecovered sends a batch, and sets reply or error of its commands. A panic in a hook of the user's client becomes the
// error of all, because on a goroutine of the executor it would end the process.
func (e *Executor) sendRecovered(batch []*Command) {
	defer catch(batch...)
	now := e.background.Now()
	for _, c := range batch {
		c.SentAt = now
		if c.OnSend != nil {
			c.OnSend()
		}
	}
	switch {
	case batch[0].Ack.Wanted():
		e.sendAcked(batch)
	case len(batch) == 1:
		sendSingle(e.batchClient(), batch[0])
	default:
		sendPipelined(batch, e.pipeline)
	}
}

// catch makes a panic the error of all these commands, and takes their replies away. The caller must defer it.
func catch(commands ...*Command) {
	if p := recover(); p != nil {
		for _, c := range commands {
			c.fail(fmt.Errorf("%w of the Redis client: %v", ErrPanic, p))
		}
	}
}

// sendSingle sends one command outside of a pipeline, and a second time if the server did not know the script.
func sendSingle(rdb processor, c *Command) {
	_ = rdb.Process(c.ctx, byHash(c)) // the command carries its error
	c.readResult()
	if c.Err != nil && unknownScript(c.Err) {
		_ = rdb.Process(c.ctx, byText(c))
		c.readResult()
	}
}

// sendPipelined sends a batch in one round trip. Commands whose script the server did not know are sent in a second one.
func sendPipelined(batch []*Command, pipeline func([]*Command, buildCmd)) {
	pipeline(batch, byHash)
	var unknown []*Command
	for _, c := range batch {
		if unknownScript(c.Err) {
			unknown = append(unknown, c)
		}
	}
	if len(unknown) > 0 {
		pipeline(unknown, byText)
	}
}

// pipeline sends a batch with the user's client.
func (e *Executor) pipeline(batch []*Command, command buildCmd) {
	pipeline(e.batchClient(), batch, command)
}

// sharedView is a view of the user's client for batches.
type sharedView struct {
	*redis.Conn
	made time.Duration // by the clock of the direct path
}

// batchClient returns what sends batches: a view of the user's client, see watched. A ClusterClient itself sends them, and so does a client of
// a type of the user's: they have no connection that could be had from them, so a reply that user code leaves unread there is not noticed.
func (e *Executor) batchClient() sendingClient {
	rdb, ok := e.Client.(*redis.Client)
	if !ok {
		return e.Client
	}
	now := e.direct.now()
	if view := e.shared.Load(); view != nil && now-view.made < directViewTTL {
		return view
	}
	view := &sharedView{e.watched(rdb), now}
	e.shared.Store(view)
	return view
}

// watched returns a view of rdb, which has the hooks that rdb has now. The process ends if go-redis does not return from a command of the
// view, see redirectHook.
func (e *Executor) watched(rdb *redis.Client) *redis.Conn {
	return redirect(rdb, bare(rdb), nil, e.die)
}

// piper makes pipelines: a client, or one of its connections.
type piper interface{ Pipeline() redis.Pipeliner }

// pipeline sends a batch, and behind it further commands. They take one connection, in a Cluster one for each master. It sets
// reply or error of each command.
func pipeline(rdb piper, batch []*Command, command buildCmd, behind ...*singleTryCmd) {
	ctx := context.Background() // the callers have different contexts: each stops waiting when its own ends
	commands := make([]redis.Cmder, 0, len(batch)+len(behind))
	for _, c := range batch {
		if c.sendAsking {
			commands = append(commands, newSingleTryCmd("asking"))
		}
		commands = append(commands, command(c))
	}
	for _, cmd := range behind {
		commands = append(commands, cmd)
	}
	pipe := rdb.Pipeline()
	_ = pipe.BatchProcess(ctx, commands...)
	execPipeline(ctx, pipe)
	for _, c := range batch {
		c.readResult()
	}
}

// execPipeline sends a pipeline. Each command carries its error. This is needed because if a server refuses a new connection by
// a reply, such as WRONGPASS, go-redis 9.20 returns that error, and leaves the commands without one and without a reply.
func execPipeline(ctx context.Context, pipe redis.Pipeliner) {
	commands, err := pipe.Exec(ctx)
	if err == nil {
		return
	}
	for _, c := range commands {
		if answered, ok := c.(interface{ Val() any }); ok && c.Err() == nil && answered.Val() == nil {
			c.SetErr(err)
		}
	}
}

// UseDirectPath lets the executor send single commands on their caller's goroutine. It does nothing if the client is not
// for one server or Sentinel group. It must be called before the first command.
func (e *Executor) UseDirectPath() { e.direct.rdb, _ = e.Client.(*redis.Client) }

// Close ends what the executor does beside commands, see Nodes.Close, and gives back the connection that the direct path keeps.
// Commands may still be sent afterwards.
func (e *Executor) Close(limit time.Duration) {
	e.Nodes.Close(limit)
	e.direct.deadline.rest()
}

// InCluster returns true if the commands go to a Cluster.
func (e *Executor) InCluster() bool { return e.Nodes.cluster != nil }

// PendingOf returns the unconfirmed commands of the server that has the key.
func (e *Executor) PendingOf(key string) *Pending { return e.Nodes.of(key).pending }

// Background is what commands need of the client on whose behalf they are sent, beyond the call that started them.
type Background struct {
	Now        keepalive.Clock
	Operations *keepalive.Operations
	// Go runs work on a goroutine that Close waits for. It returns false, and runs nothing, if the client has finished.
	Go func(work func(ctx context.Context)) bool
	// Recovered calls a function that may run hooks of the user's Redis client, and logs a panic in them.
	Recovered func(call func())
	// Confirmed is called after a server has confirmed a command of Pending.
	Confirmed func()
}

// FirstAnswerTimeout is how long the first try of a command waits for its answer. Each further try waits twice as long as the
// one before. It is shorter than the read timeout of go-redis, so that the next try can use another connection in time.
const FirstAnswerTimeout = time.Second

// ReleaseGrace is how long a detached command waits for its answer after the caller's context has ended. It is long enough
// for an answer that is on its way, and too short to delay the caller noticeably if the server is frozen.
const ReleaseGrace = 25 * time.Millisecond

// DetachedContext is the context of a command that must be sent even after the caller's context has ended. The executor
// waits for the answer for FirstAnswerTimeout. If the caller's context ends meanwhile, it waits for ReleaseGrace more.
//
// The executor of a single server has to know the type, because a context with a timer of its own takes five allocations.
type DetachedContext struct {
	context.Context // the caller's; without its end if it had ended before Reset
}

// Reset prepares d for one command and returns it. The caller must not use d for another command before that one returns.
func (d *DetachedContext) Reset(ctx context.Context) context.Context {
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	d.Context = ctx
	return d
}

// Detached returns a new DetachedContext for one command.
func Detached(ctx context.Context) context.Context { return new(DetachedContext).Reset(ctx) }

// Command is one run of a script, from its arguments to its reply. It is used once. Its fields must not be changed between
// the submission and the answer.
type Command struct {
	ctx    context.Context // for the hooks of the user's client, if the command is sent in no batch
	script *Script
	Args   []any             // of EVALSHA; the keys begin at firstKey
	buffer [bufferedArgs]any // the memory of Args, unless there are more
	node   *node
	Ack    Ack    // of replicas; in one queue all commands want one, or none does
	OnSend func() // called when the command is sent in a batch; may be nil

	// waitUntil is when the wait for the answer is over, by the clock of the direct path. It is 0 if nobody waits any more. Guarded
	// by the mutex of the queue while the command is in it or in flight.
	waitUntil  time.Duration
	keys       keyCount
	sendAsking bool // true if ASKING has to be sent before the command
	// Repeated is true if the command was sent a second time because the first had no answer in directTimeout. The first
	// may still arrive, whatever the answer to the second is.
	Repeated bool

	state      atomic.Int32      // commandQueued, commandSent or commandWithdrawn
	SentAt     keepalive.Instant // read before the command was sent; zero on the direct path
	connectCtx connectContext    // on the direct path: what ctx refers to, see connectDeadline

	// Done is called when the command is answered, on a goroutine of the executor. If Done is nil, answered receives true.
	Done func(*Command)
	// answered receives false when the wait is over. It has room for both. If there was no answer, it is not used for another command,
	// because a late answer would end the wait of that one.
	answered chan bool

	Reply any
	Err   error // nil if the script has returned a reply

	cmd singleTryCmd
}

// bufferedArgs is how many arguments take no memory of their own: as many as any strategy needs for a free lock. It is not more, because
// half of what a lock leaves to the garbage collector are its commands.
const bufferedArgs = 9

// Ack is how many replicas have to acknowledge a command's writes, and how long they have for it. The zero value asks
// for none.
type Ack struct {
	Replicas int
	Timeout  time.Duration // of WAIT, which comes on top of the time for the command itself
}

// Wanted returns true if at least one replica has to acknowledge.
func (a Ack) Wanted() bool { return a.Replicas > 0 }

// States of a command in a batch queue. Both changes are from commandQueued: a command is sent or withdrawn, never both.
const (
	commandQueued = iota
	commandSent
	commandWithdrawn
)

// firstKey is the index of the first key in the arguments of EVALSHA. Before it are the name of the command, the hash of
// the script and the number of keys.
const firstKey = 3

// NewCommand returns the command that runs s with these keys and arguments. It copies both slices. There must be a key.
func NewCommand(s *Script, keys []string, args ...any) *Command {
	c := new(Command)
	c.Init(s, len(keys))
	for _, key := range keys {
		c.Args = append(c.Args, key)
	}
	c.Args = append(c.Args, args...)
	return c
}

// Init sets the script and the arguments of a new command. The first args are the keys, and keys is their number. It stands
// beside NewCommand because callers that have their keys as values of type any save allocations.
func (c *Command) Init(s *Script, keys int, args ...any) {
	c.ctx, c.script = context.Background(), s
	c.keys = keyCount{n: uint16(keys)}
	c.Args = append(append(c.buffer[:0], evalsha, s.shaArg, &c.keys), args...)
}

// key returns the first key, which decides on the master. There must be one.
func (c *Command) key() string {
	key, _ := c.Args[firstKey].(string)
	return key
}

// fail makes err the outcome of a command, whatever has been read of its answer.
func (c *Command) fail(err error) {
	c.Reply, c.Err = nil, c.markUnwritten(err)
}

// deliver notifies the caller of the answer. It must be called once.
func (c *Command) deliver() {
	if c.Done != nil {
		c.Done(c)
		return
	}
	c.answered <- true
}

// hasReply returns true if the answer has come by now, after a wait without it. The end of the wait may stand before it.
func (c *Command) hasReply() bool {
	for {
		select {
		case answered := <-c.answered:
			if answered {
				return true
			}
		default:
			return false
		}
	}
}

// withdraw cancels a command in a batch queue. It returns false if a sender has taken the command before.
func (c *Command) withdraw() bool { return c.state.CompareAndSwap(commandQueued, commandWithdrawn) }

// singleTryCmd is a [redis.Cmd] without the retries of go-redis, because after a lost reply go-redis sends a command again, up
// to four executions in all, without notice. This package decides itself whether and for how long to retry: by the outcome, and
// by the time that the caller has left.
type singleTryCmd struct{ redis.Cmd }

// NoRetry returns true, so that go-redis does not send the command again.
func (*singleTryCmd) NoRetry() bool { return true }

// newSingleTryCmd makes a command that is no script, such as WAIT.
func newSingleTryCmd(args ...any) *singleTryCmd {
	return &singleTryCmd{*redis.NewCmd(context.Background(), args...)}
}

// buildCmd makes the go-redis command that runs a script.
type buildCmd = func(c *Command) redis.Cmder

// byHash makes an EVALSHA, which sends only the hash of the script.
func byHash(c *Command) redis.Cmder { return c.prepare(c.Args) }

// byText makes an EVAL, for a server that does not know the script: for instance after SCRIPT FLUSH, a restart or a
// failover.
func byText(c *Command) redis.Cmder {
	c.keys.written = 0                                            // the server has refused the hash
	args := append([]any{"eval", c.script.Source}, c.Args[2:]...) // a copy: hooks may still read the arguments of EVALSHA
	return c.prepare(args)
}

// prepare makes the go-redis command with these arguments. Its context is the background: the one that counts is passed
// when the command is sent.
func (c *Command) prepare(args []any) redis.Cmder {
	c.cmd.Cmd = *redis.NewCmd(context.Background(), args...)
	c.cmd.SetFirstKeyPos(firstKey)
	return &c.cmd
}

// readResult sets the reply or the error of the command from its go-redis command.
func (c *Command) readResult() {
	if c.Reply, c.Err = c.cmd.Result(); c.Err != nil {
		c.Err = c.markUnwritten(readable(unwrapScript(c.Err)))
	}
}

// timeoutError returns the error of a command. If ctx has ended, or its deadline has passed, a timeout of go-redis becomes
// ErrNotAnswered, or ErrNotSent if the command was not written.
//
// Because with ContextTimeoutEnabled, go-redis bounds commands by the context too, and its timeout may come before the end of
// the context is noticed. Otherwise a busy lock would look like an outage.
func (c *Command) timeoutError(ctx context.Context) error {
	if c.Err == nil {
		return nil
	}
	var timeout net.Error
	if !errors.As(c.Err, &timeout) || !timeout.Timeout() {
		return c.Err
	}
	end, ends := ctx.Deadline()
	switch over := ctx.Err() != nil || ends && !time.Now().Before(end); {
	case !over:
		return c.Err
	case c.keys.written > 0:
		return ErrNotAnswered
	}
	return ErrNotSent
}

// markUnwritten wraps err in an unwrittenError if the command was never written to a connection, and so was not executed.
func (c *Command) markUnwritten(err error) error {
	if err == nil || c.keys.written > 0 || Replied(err) {
		return err
	}
	return &unwrittenError{err}
}

// keyCount is the number of keys as an argument of EVALSHA. It records whether the server can have seen the command.
//
// It is this argument because go-redis encodes it when it writes the command to a connection, and not before. So written stays
// 0 if a hook, a limiter or the connection pool refuses the command. It costs no allocation.
type keyCount struct {
	n       uint16
	written uint16  // how often the command was written to a connection
	digits  [4]byte // the memory of the encoded number
}

// MarshalBinary returns the number in decimal digits. go-redis calls it when it writes the command.
func (k *keyCount) MarshalBinary() ([]byte, error) {
	k.written++
	return strconv.AppendInt(k.digits[:0], int64(k.n), 10), nil
}

// String returns the number in decimal digits, for hooks that print commands.
func (k *keyCount) String() string { return strconv.Itoa(int(k.n)) }

// Script is a Lua script and the SHA-1 under which servers know it. It is not changed, so it is safe for concurrent use.
type Script struct {
	Source string // the text
	shaArg any    // the SHA-1 in hexadecimal digits, a string; kept as any to save an allocation for each command
	writes bool   // true if it can write, so that a replica refuses it
}

// writing finds the commands of scripts that write.
var writing = regexp.MustCompile(`call\('(SET|HSET|HDEL|HINCRBY|INCR|DEL|UNLINK|ZADD|ZREM|PEXPIRE)'`)

// NewScript returns the script of a Lua source.
func NewScript(source string) *Script {
	return &Script{Source: source, shaArg: redis.NewScript(source).Hash(), writes: writing.MatchString(source)}
}

// evalsha is the command that runs a script by its hash.
var evalsha any = "evalsha"

// ReadScripts returns the text of the files lua/<name>.lua, one behind the other. It panics if one is missing, because the
// files are part of the program.
func ReadScripts(files embed.FS, names ...string) string {
	var source strings.Builder
	for _, name := range names {
		text, err := files.ReadFile("lua/" + name + ".lua")
		if err != nil {
			panic(err)
		}
		source.Write(text)
	}
	return source.String()
}
