package transport

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Executor sends all lock commands to Redis. It returns as soon as the caller's context ends, whatever the connection
// does. Why: go-redis does not interrupt a read in flight, and by default ignores deadlines too. Commands of concurrent
// goroutines share round trips, see batch_queue.go. A single command is mostly sent on its caller's goroutine, see
// direct.go.
type Executor struct {
	Client     redis.UniversalClient // of the user
	background Background
	stop       <-chan struct{} // closed when no caller waits for answers any more

	OnReply func() // called when a server has answered, often, and must not take long; may be nil

	Nodes *Nodes

	direct directPath

	wakeups sync.Pool // of *wakeup; one pool per client, since virtual time in tests allows no sharing
}

// NewExecutor returns an executor that sends to rdb. Waiting callers return when stop is closed.
func NewExecutor(rdb redis.UniversalClient, background Background, stop <-chan struct{}) *Executor {
	e := &Executor{Client: rdb, background: background, stop: stop}
	e.direct.start = time.Now()
	e.Nodes = NewNodes(rdb, &e.background, e.sendBatch)
	return e
}

// Do runs a script and returns its reply. It returns within moments of ctx ending, then with ErrNotSent if
// the command was withdrawn in time and with ErrNotAnswered if it may still run. Hooks of the user's client have to return
// by themselves.
func (e *Executor) Do(ctx context.Context, s *Script, keys []string, args ...any) (any, error) {
	return e.DoWithAck(ctx, Ack{}, s, keys, args...)
}

// DoWithAck is Do for a script whose success counts only if replicas acknowledge it, see ack.go.
func (e *Executor) DoWithAck(ctx context.Context, a Ack, s *Script, keys []string, args ...any) (any, error) {
	c := NewCommand(s, keys, args...)
	c.Ack = a
	if err := e.Run(ctx, c); err != nil {
		return nil, err
	}
	return c.Reply, nil
}

// Run is Do for a command, which has the reply if there is no error.
func (e *Executor) Run(ctx context.Context, c *Command) error {
	c.ctx = ctx
	c.node = e.Nodes.of(c.key())
	if !e.direct.tryReserve(c) {
		return e.doQueued(ctx, c)
	}
	if e.sendDirect(c); !timedOut(c.Err) {
		return c.timeoutError(ctx)
	}
	first := c.keys.written
	switch {
	case ctx.Err() != nil && first:
		return ErrNotAnswered // no grace beyond the timeouts of the direct path, not even for a DetachedContext
	case ctx.Err() != nil:
		return ErrNotSent
	}
	c.Repeated, c.keys.written = first, false
	err := e.doQueued(ctx, c)
	if err == ErrNotSent && first {
		err = ErrNotAnswered
	}
	return err
}

// doQueued sends a command through its batch queue, and waits for the answer.
func (e *Executor) doQueued(ctx context.Context, c *Command) error {
	w, _ := e.wakeups.Get().(*wakeup)
	if w == nil {
		w = newWakeup()
	}
	c.answered = w.answered
	submit(ctx, c.node.queueFor(c), c)
	if e.awaitReply(ctx, c, w) {
		e.wakeups.Put(w)
		return c.timeoutError(ctx)
	}
	if c.withdraw() {
		return ErrNotSent
	}
	select {
	case <-c.answered:
		return c.timeoutError(ctx) // at the same moment
	default:
		return ErrNotAnswered
	}
}

// wakeup is the channel and the timer of one wait for an answer. It is reused, unless an answer may still come.
type wakeup struct {
	answered chan struct{} // holds one element
	timer    *time.Timer
}

func newWakeup() *wakeup {
	w := &wakeup{answered: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	w.timer.Stop()
	return w
}

// AnswerTimeout bounds the wait for a command whose context has no end. Why: go-redis may take far longer. It dials five
// times if no connection can be made.
const AnswerTimeout = 5 * time.Second

// awaitReply returns true when the answer is there. It returns false if the time is up, if the client has stopped, or if
// the command has not been answered in StallTimeout and its key now belongs to another master.
func (e *Executor) awaitReply(ctx context.Context, c *Command, w *wakeup) bool {
	var stalled <-chan time.Time
	if e.Nodes.topology != nil {
		ticker := time.NewTicker(StallTimeout)
		defer ticker.Stop()
		stalled = ticker.C
	}
	timeout := AnswerTimeout + c.Ack.Timeout
	detachedCtx, detached := ctx.(*DetachedContext)
	if detached {
		timeout = detachedCtx.timeout
	}
	w.timer.Reset(timeout)
	defer w.timer.Stop()
	for end := ctx.Done(); ; {
		select {
		case <-w.answered:
			return true
		case <-end:
			if !detached {
				return false
			}
			end = nil
			w.timer.Reset(ReleaseGrace)
		case <-w.timer.C:
			return false
		case <-e.stop:
			return false
		case <-stalled:
			e.Nodes.RequestRefresh()
			if e.Nodes.rerouted(c) {
				return false
			}
		}
	}
}

// SubmitRenewals sends renewals without waiting. The done function of each is called when its outcome is known, on a goroutine
// of the executor.
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

// sendBatch sends a batch and delivers the answer of each of its commands.
func (e *Executor) sendBatch(batch []*Command) {
	sentAt := e.direct.now()
	e.sendRecovered(batch)
	if !batch[0].Ack.Wanted() {
		e.direct.observeRTT(sentAt, batch[0].Err)
	}
	for _, c := range batch {
		if suggestsMove(c.Err) {
			e.Nodes.RequestRefresh()
		}
		if c.Err == nil && e.Nodes.rerouted(c) {
			// A master that was frozen until its replica was promoted answers before it knows. What it has written is
			// lost.
			c.Reply, c.List, c.Err = nil, nil, ErrNotAnswered
		}
		c.deliver()
	}
	if e.OnReply != nil && replied(batch[0].Err) {
		e.OnReply()
	}
}

// sendRecovered sends a batch. A panic in a hook of the user's client becomes the error of its commands. Why: on a
// goroutine of the executor it would end the process.
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
		sendSingle(e.Client, batch[0])
	default:
		sendPipelined(batch, e.pipeline)
	}
}

// catch makes a panic the error of commands. The caller must defer it.
func catch(commands ...*Command) {
	if p := recover(); p != nil {
		for _, c := range commands {
			c.Reply, c.List = nil, nil
			c.Err = c.markUnwritten(fmt.Errorf("%w of the Redis client: %v", ErrPanic, p))
		}
	}
}

func sendSingle(rdb processor, c *Command) {
	_ = rdb.Process(c.ctx, byHash(c)) // the command carries its error
	c.readResult()
	if unknownScript(c.Err) {
		_ = rdb.Process(c.ctx, byText(c))
		c.readResult()
	}
}

// sendPipelined sends a batch in one round trip, and the commands whose script the server did not know in a second.
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

func (e *Executor) pipeline(batch []*Command, command buildCmd) { pipeline(e.Client, batch, command) }

// piper makes pipelines.
type piper interface{ Pipeline() redis.Pipeliner }

// pipeline sends a batch, and behind it further commands, on one connection (in a Cluster, one for each master).
func pipeline(rdb piper, batch []*Command, command buildCmd, behind ...*singleTryCmd) {
	ctx := context.Background() // not that of a caller: each returns by itself when its own ends
	pipe := rdb.Pipeline()
	for _, c := range batch {
		if c.sendAsking {
			_ = pipe.Process(ctx, newSingleTryCmd("asking"))
		}
		_ = pipe.Process(ctx, command(c))
	}
	for _, cmd := range behind {
		_ = pipe.Process(ctx, cmd)
	}
	_, _ = pipe.Exec(ctx) // each command carries its error
	for _, c := range batch {
		c.readResult()
	}
}

func unknownScript(err error) bool {
	return err != nil && redis.HasErrorPrefix(err, "NOSCRIPT")
}

// UseDirectPath lets the executor send single commands on their caller's goroutine, if rdb is a client of one server.
func (e *Executor) UseDirectPath() { e.direct.rdb, _ = e.Client.(*redis.Client) }

// InCluster reports whether the commands go to a Cluster.
func (e *Executor) InCluster() bool { return e.Nodes.InCluster() }

// PendingOf returns the queue of unconfirmed commands of the server that has the key.
func (e *Executor) PendingOf(key string) *Pending { return e.Nodes.of(key).pending }
