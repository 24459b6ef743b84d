package core

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// executor is the one way to Redis for all lock commands. It answers as soon as the caller's context ends,
// whatever the connection does: go-redis does not interrupt a read in flight, and by default does not heed
// deadlines either. Commands of many goroutines that are under way at the same time share round trips; a
// lone command travels plainly, and mostly on the caller's goroutine, see direct.go.
type executor struct {
	rdb  redis.UniversalClient
	now  clock
	stop <-chan struct{} // nobody waits for answers any more once it is closed

	onReply func() // called when a server has answered, often, and must not take long; may be nil

	nodes *nodes

	direct directPath

	wakes sync.Pool // of *wake; each belongs to whoever uses this client, as virtual time in tests demands
}

func newExecutor(rdb redis.UniversalClient, now clock, stop <-chan struct{}) *executor {
	e := &executor{rdb: rdb, now: now, stop: stop}
	e.direct.start = time.Now()
	e.nodes = newNodes(rdb, e.fly)
	return e
}

// do runs a script and returns its reply. It returns within moments of ctx ending, then with errNotSent if
// the command was withdrawn in time and with errNotAnswered if it may still run. Hooks of the user's client have to return
// by themselves.
func (e *executor) do(ctx context.Context, s *script, keys []string, args ...any) (any, error) {
	return e.doAcked(ctx, ack{}, s, keys, args...)
}

// doAcked is do for a script whose success counts only if replicas acknowledge it, see replicaack.go.
func (e *executor) doAcked(ctx context.Context, a ack, s *script, keys []string, args ...any) (any, error) {
	c := newCall(s, keys, args...)
	c.ack = a
	if err := e.run(ctx, c); err != nil {
		return nil, err
	}
	return c.reply, nil
}

// ask is do for the request of a hold, which may be granted.
func (e *executor) ask(ctx context.Context, h *hold, s *script, keys []string, args ...any) (any, error) {
	c := newCall(s, keys, args...)
	c.ack = h.ack
	err := e.run(ctx, c)
	c.mark(h)
	if err != nil {
		return nil, err
	}
	return c.reply, nil
}

// run is do for a call, which has the reply if there is no error.
func (e *executor) run(ctx context.Context, c *call) error {
	c.ctx = ctx
	c.way = e.nodes.of(c.key())
	if !e.direct.tryReserve(c) {
		return e.wait(ctx, c)
	}
	if e.sendDirect(c); !timedOut(c.err) {
		return c.cutShort(ctx)
	}
	first := c.keys.written
	switch {
	case ctx.Err() != nil && first:
		return errNotAnswered // no grace beyond the timeouts of the direct path, not even for a detachedContext
	case ctx.Err() != nil:
		return errNotSent
	}
	c.repeated, c.keys.written = first, false
	err := e.wait(ctx, c)
	if err == errNotSent && first {
		err = errNotAnswered
	}
	return err
}

// wait sends a call with others, and waits for its answer.
func (e *executor) wait(ctx context.Context, c *call) error {
	w, _ := e.wakes.Get().(*wake)
	if w == nil {
		w = newWake()
	}
	c.answered = w.answered
	submit(ctx, c.way.laneFor(c), c)
	if e.await(ctx, c, w) {
		e.wakes.Put(w)
		return c.cutShort(ctx)
	}
	if c.withdraw() {
		return errNotSent
	}
	select {
	case <-c.answered:
		return c.cutShort(ctx) // at the same moment
	default:
		return errNotAnswered
	}
}

// wake is what wakes those who wait for an answer. It is used again, unless an answer may still come.
type wake struct {
	answered chan struct{} // holds one element
	limit    *time.Timer
}

func newWake() *wake {
	w := &wake{answered: make(chan struct{}, 1), limit: time.NewTimer(time.Hour)}
	w.limit.Stop()
	return w
}

// answerTimeout is how long a command is waited for that nobody bounds. go-redis may take far longer: when there is no
// connection to be had, it dials five times.
const answerTimeout = 5 * time.Second

// await returns true when the answer is there. It returns false if there will be none in time, or if a command that has
// not been answered for a while should go to another master now.
func (e *executor) await(ctx context.Context, c *call, w *wake) bool {
	var late <-chan time.Time
	if e.nodes.topology != nil {
		ticker := time.NewTicker(stall)
		defer ticker.Stop()
		late = ticker.C
	}
	limit := answerTimeout + c.ack.timeout
	detachedCtx, detached := ctx.(*detachedContext)
	if detached {
		limit = detachedCtx.timeout
	}
	w.limit.Reset(limit)
	defer w.limit.Stop()
	for end := ctx.Done(); ; {
		select {
		case <-w.answered:
			return true
		case <-end:
			if !detached {
				return false
			}
			end = nil
			w.limit.Reset(releaseGrace)
		case <-w.limit.C:
			return false
		case <-e.stop:
			return false
		case <-late:
			e.nodes.doubt()
			if e.nodes.moved(c) {
				return false
			}
		}
	}
}

// renew sends renewals; the done function of each is called when its outcome is known, on a goroutine of the
// executor.
func (e *executor) renew(calls []*call) {
	batches := make(map[*lane][]*call, 1)
	for _, c := range calls {
		c.way = e.nodes.of(c.key())
		l := c.way.renewalLaneFor(c)
		batches[l] = append(batches[l], c)
	}
	for l, batch := range batches {
		l.submit(batch...)
	}
}

// fly sends a batch and completes each of its calls.
func (e *executor) fly(batch []*call) {
	departed := e.direct.now()
	e.send(batch)
	if !batch[0].ack.wanted() {
		e.direct.observeRTT(departed, batch[0].err)
	}
	for _, c := range batch {
		if misled(c.err) {
			e.nodes.doubt()
		}
		if c.err == nil && e.nodes.moved(c) {
			// A master that was frozen until its replica was promoted answers before it learns of that, and what it
			// says is lost.
			c.reply, c.list, c.err = nil, nil, errNotAnswered
		}
		c.land()
	}
	if e.onReply != nil && replied(batch[0].err) {
		e.onReply()
	}
}

// send runs on a goroutine of its own, where a panic in a hook of the user's client would end the process; here it
// ends the calls.
func (e *executor) send(batch []*call) {
	defer catch(batch...)
	now := e.now()
	for _, c := range batch {
		c.sentAt = now
		if c.board != nil {
			c.board()
		}
	}
	switch {
	case batch[0].ack.wanted():
		e.sendAcked(batch)
	case len(batch) == 1:
		sendAlone(e.rdb, batch[0])
	default:
		sendTogether(batch, e.pipeline)
	}
}

// catch makes a panic the end of calls; it is to be deferred.
func catch(calls ...*call) {
	if p := recover(); p != nil {
		for _, c := range calls {
			c.reply, c.list = nil, nil
			c.err = c.unlessWritten(fmt.Errorf("%w of the Redis client: %v", errPanic, p))
		}
	}
}

func sendAlone(rdb processor, c *call) {
	_ = rdb.Process(c.ctx, byHash(c)) // the command carries its error
	c.take()
	if unknownScript(c.err) {
		_ = rdb.Process(c.ctx, byText(c))
		c.take()
	}
}

// sendTogether sends a batch in one round trip, and those whose script the server did not know in a second.
func sendTogether(batch []*call, pipeline func([]*call, verb)) {
	pipeline(batch, byHash)
	var unknown []*call
	for _, c := range batch {
		if unknownScript(c.err) {
			unknown = append(unknown, c)
		}
	}
	if len(unknown) > 0 {
		pipeline(unknown, byText)
	}
}

func (e *executor) pipeline(batch []*call, command verb) { pipeline(e.rdb, batch, command) }

// piper is what sends several commands together.
type piper interface{ Pipeline() redis.Pipeliner }

// pipeline sends a batch, and behind it what else there is, on one connection (in a Cluster, one for each master).
func pipeline(rdb piper, batch []*call, command verb, behind ...*attempt) {
	ctx := context.Background() // no caller's: each leaves by itself when its own ends
	pipe := rdb.Pipeline()
	for _, c := range batch {
		if c.asking {
			_ = pipe.Process(ctx, newAttempt("asking"))
		}
		_ = pipe.Process(ctx, command(c))
	}
	for _, a := range behind {
		_ = pipe.Process(ctx, a)
	}
	_, _ = pipe.Exec(ctx) // each command carries its error
	for _, c := range batch {
		c.take()
	}
}

func unknownScript(err error) bool {
	return err != nil && redis.HasErrorPrefix(err, "NOSCRIPT")
}
