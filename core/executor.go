package core

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// executor sends all lock commands to Redis. It returns as soon as the caller's context ends, whatever the connection
// does. Why: go-redis does not interrupt a read in flight, and by default ignores deadlines too. Commands of concurrent
// goroutines share round trips, see batch_queue.go. A single command is mostly sent on its caller's goroutine, see
// direct.go.
type executor struct {
	rdb  redis.UniversalClient
	now  clock.Clock
	stop <-chan struct{} // closed when no caller waits for answers any more

	onReply func() // called when a server has answered, often, and must not take long; may be nil

	nodes *nodes

	direct directPath

	wakeups sync.Pool // of *wakeup; one pool per client, since virtual time in tests allows no sharing
}

func newExecutor(rdb redis.UniversalClient, now clock.Clock, stop <-chan struct{}) *executor {
	e := &executor{rdb: rdb, now: now, stop: stop}
	e.direct.start = time.Now()
	e.nodes = newNodes(rdb, e.sendBatch)
	return e
}

// do runs a script and returns its reply. It returns within moments of ctx ending, then with errNotSent if
// the command was withdrawn in time and with errNotAnswered if it may still run. Hooks of the user's client have to return
// by themselves.
func (e *executor) do(ctx context.Context, s *script, keys []string, args ...any) (any, error) {
	return e.doWithAck(ctx, ack{}, s, keys, args...)
}

// doWithAck is do for a script whose success counts only if replicas acknowledge it, see replicaack.go.
func (e *executor) doWithAck(ctx context.Context, a ack, s *script, keys []string, args ...any) (any, error) {
	c := newCommand(s, keys, args...)
	c.ack = a
	if err := e.run(ctx, c); err != nil {
		return nil, err
	}
	return c.reply, nil
}

// doForHold is doWithAck for a request of h. It counts in h a request that was repeated.
func (e *executor) doForHold(ctx context.Context, h *hold, s *script, keys []string, args ...any) (any, error) {
	c := newCommand(s, keys, args...)
	c.ack = h.ack
	err := e.run(ctx, c)
	c.countUnanswered(h)
	if err != nil {
		return nil, err
	}
	return c.reply, nil
}

// run is do for a command, which has the reply if there is no error.
func (e *executor) run(ctx context.Context, c *command) error {
	c.ctx = ctx
	c.node = e.nodes.of(c.key())
	if !e.direct.tryReserve(c) {
		return e.doQueued(ctx, c)
	}
	if e.sendDirect(c); !timedOut(c.err) {
		return c.timeoutError(ctx)
	}
	first := c.keys.written
	switch {
	case ctx.Err() != nil && first:
		return errNotAnswered // no grace beyond the timeouts of the direct path, not even for a detachedContext
	case ctx.Err() != nil:
		return errNotSent
	}
	c.repeated, c.keys.written = first, false
	err := e.doQueued(ctx, c)
	if err == errNotSent && first {
		err = errNotAnswered
	}
	return err
}

// doQueued sends a command through its batch queue, and waits for the answer.
func (e *executor) doQueued(ctx context.Context, c *command) error {
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
		return errNotSent
	}
	select {
	case <-c.answered:
		return c.timeoutError(ctx) // at the same moment
	default:
		return errNotAnswered
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

// answerTimeout bounds the wait for a command whose context has no end. Why: go-redis may take far longer. It dials five
// times if no connection can be made.
const answerTimeout = 5 * time.Second

// awaitReply returns true when the answer is there. It returns false if the time is up, if the client has stopped, or if
// the command has not been answered in stallTimeout and its key now belongs to another master.
func (e *executor) awaitReply(ctx context.Context, c *command, w *wakeup) bool {
	var late <-chan time.Time
	if e.nodes.topology != nil {
		ticker := time.NewTicker(stallTimeout)
		defer ticker.Stop()
		late = ticker.C
	}
	limit := answerTimeout + c.ack.timeout
	detachedCtx, detached := ctx.(*detachedContext)
	if detached {
		limit = detachedCtx.timeout
	}
	w.timer.Reset(limit)
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
			w.timer.Reset(releaseGrace)
		case <-w.timer.C:
			return false
		case <-e.stop:
			return false
		case <-late:
			e.nodes.requestRefresh()
			if e.nodes.rerouted(c) {
				return false
			}
		}
	}
}

// renew sends renewals without waiting. The done function of each is called when its outcome is known, on a goroutine
// of the executor.
func (e *executor) renew(calls []*command) {
	batches := make(map[*batchQueue][]*command, 1)
	for _, c := range calls {
		c.node = e.nodes.of(c.key())
		l := c.node.renewalQueueFor(c)
		batches[l] = append(batches[l], c)
	}
	for l, batch := range batches {
		l.submit(batch...)
	}
}

// sendBatch sends a batch and delivers the answer of each of its commands.
func (e *executor) sendBatch(batch []*command) {
	sentAt := e.direct.now()
	e.sendRecovered(batch)
	if !batch[0].ack.wanted() {
		e.direct.observeRTT(sentAt, batch[0].err)
	}
	for _, c := range batch {
		if suggestsMove(c.err) {
			e.nodes.requestRefresh()
		}
		if c.err == nil && e.nodes.rerouted(c) {
			// A master that was frozen until its replica was promoted answers before it knows. What it has written is
			// lost.
			c.reply, c.list, c.err = nil, nil, errNotAnswered
		}
		c.deliver()
	}
	if e.onReply != nil && replied(batch[0].err) {
		e.onReply()
	}
}

// sendRecovered sends a batch. A panic in a hook of the user's client becomes the error of its commands. Why: on a
// goroutine of the executor it would end the process.
func (e *executor) sendRecovered(batch []*command) {
	defer catch(batch...)
	now := e.now()
	for _, c := range batch {
		c.sentAt = now
		if c.onSend != nil {
			c.onSend()
		}
	}
	switch {
	case batch[0].ack.wanted():
		e.sendAcked(batch)
	case len(batch) == 1:
		sendSingle(e.rdb, batch[0])
	default:
		sendPipelined(batch, e.pipeline)
	}
}

// catch makes a panic the error of commands. The caller must defer it.
func catch(calls ...*command) {
	if p := recover(); p != nil {
		for _, c := range calls {
			c.reply, c.list = nil, nil
			c.err = c.markUnwritten(fmt.Errorf("%w of the Redis client: %v", errPanic, p))
		}
	}
}

func sendSingle(rdb processor, c *command) {
	_ = rdb.Process(c.ctx, byHash(c)) // the command carries its error
	c.readResult()
	if unknownScript(c.err) {
		_ = rdb.Process(c.ctx, byText(c))
		c.readResult()
	}
}

// sendPipelined sends a batch in one round trip, and the commands whose script the server did not know in a second.
func sendPipelined(batch []*command, pipeline func([]*command, buildCmd)) {
	pipeline(batch, byHash)
	var unknown []*command
	for _, c := range batch {
		if unknownScript(c.err) {
			unknown = append(unknown, c)
		}
	}
	if len(unknown) > 0 {
		pipeline(unknown, byText)
	}
}

func (e *executor) pipeline(batch []*command, command buildCmd) { pipeline(e.rdb, batch, command) }

// piper makes pipelines.
type piper interface{ Pipeline() redis.Pipeliner }

// pipeline sends a batch, and behind it further commands, on one connection (in a Cluster, one for each master).
func pipeline(rdb piper, batch []*command, command buildCmd, behind ...*singleTryCmd) {
	ctx := context.Background() // not that of a caller: each returns by itself when its own ends
	pipe := rdb.Pipeline()
	for _, c := range batch {
		if c.sendAsking {
			_ = pipe.Process(ctx, newSingleTryCmd("asking"))
		}
		_ = pipe.Process(ctx, command(c))
	}
	for _, a := range behind {
		_ = pipe.Process(ctx, a)
	}
	_, _ = pipe.Exec(ctx) // each command carries its error
	for _, c := range batch {
		c.readResult()
	}
}

func unknownScript(err error) bool {
	return err != nil && redis.HasErrorPrefix(err, "NOSCRIPT")
}
