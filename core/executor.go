package core

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// executor is the one way to Redis for all lock commands. It answers as soon as the caller's context ends,
// whatever the connection does: go-redis does not interrupt a read in flight, and by default does not heed
// deadlines either. Commands of many goroutines that are under way at the same time share round trips; a
// lone command travels plainly.
type executor struct {
	rdb  redis.UniversalClient
	now  clock
	stop <-chan struct{} // nobody waits for answers any more once it is closed

	nodes *nodes
}

func newExecutor(rdb redis.UniversalClient, now clock, stop <-chan struct{}) *executor {
	e := &executor{rdb: rdb, now: now, stop: stop}
	e.nodes = newNodes(rdb, e.fly)
	return e
}

// do runs a script and returns its reply. It returns within moments of ctx ending, then with errNotSent if
// the command was withdrawn in time and with errNotAnswered if it may still run.
func (e *executor) do(ctx context.Context, s *script, keys []string, args ...any) (any, error) {
	answered := make(chan struct{})
	c := &call{ctx: ctx, script: s, keys: keys, args: args, done: func(*call) { close(answered) }}
	c.way = e.nodes.of(keys[0])
	submit(ctx, c.way.calls, c)
	if e.wait(ctx, c, answered) {
		return c.reply, c.err
	}
	if c.withdraw() {
		return nil, errNotSent
	}
	if closed(answered) {
		return c.reply, c.err // at the same moment
	}
	return nil, errNotAnswered
}

// wait returns true when the answer is there. It returns false if there will be none in time, or if a command that has
// not been answered for a while should go to another master now.
func (e *executor) wait(ctx context.Context, c *call, answered <-chan struct{}) bool {
	var late <-chan time.Time
	if e.nodes.topology != nil {
		ticker := time.NewTicker(stall)
		defer ticker.Stop()
		late = ticker.C
	}
	for {
		select {
		case <-answered:
			return true
		case <-ctx.Done():
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
	batches := make(map[*node][]*call, 1)
	for _, c := range calls {
		c.way = e.nodes.of(c.keys[0])
		batches[c.way] = append(batches[c.way], c)
	}
	for n, batch := range batches {
		n.renewals.submit(batch...)
	}
}

// fly sends a batch and completes each of its calls.
func (e *executor) fly(batch []*call) {
	e.send(batch)
	for _, c := range batch {
		if misled(c.err) {
			e.nodes.doubt()
		}
		if c.err == nil && e.nodes.moved(c) {
			// A master that was frozen until its replica was promoted answers before it learns of that, and what it
			// says is lost.
			c.reply, c.err = nil, errNotAnswered
		}
		c.done(c)
	}
}

// send runs on a goroutine of its own, where a panic in a hook of the user's client would end the process; here it
// ends the calls.
func (e *executor) send(batch []*call) {
	defer func() {
		if p := recover(); p != nil {
			for _, c := range batch {
				c.reply, c.err = nil, fmt.Errorf("%w of the Redis client: %v", errPanic, p)
			}
		}
	}()
	now := e.now()
	for _, c := range batch {
		c.sentAt = now
		if c.board != nil {
			c.board()
		}
	}
	if len(batch) == 1 {
		e.sendAlone(batch[0])
	} else {
		e.sendTogether(batch)
	}
}

func (e *executor) sendAlone(c *call) {
	e.process(c, c.script.evalsha(c.keys, c.args))
	if unknownScript(c.err) {
		e.process(c, c.script.eval(c.keys, c.args))
	}
}

func (e *executor) process(c *call, a attempt) {
	_ = e.rdb.Process(c.ctx, a) // the command carries its error
	c.take(a)
}

// sendTogether sends a batch in one round trip, and those whose script the server did not know in a second.
func (e *executor) sendTogether(batch []*call) {
	e.pipeline(batch, (*script).evalsha)
	var unknown []*call
	for _, c := range batch {
		if unknownScript(c.err) {
			unknown = append(unknown, c)
		}
	}
	if len(unknown) > 0 {
		e.pipeline(unknown, (*script).eval)
	}
}

func (e *executor) pipeline(batch []*call, command func(*script, []string, []any) attempt) {
	ctx := context.Background() // no caller's: each leaves by itself when its own ends
	pipe := e.rdb.Pipeline()
	sent := make([]attempt, len(batch))
	for i, c := range batch {
		sent[i] = command(c.script, c.keys, c.args)
		_ = pipe.Process(ctx, sent[i])
	}
	_, _ = pipe.Exec(ctx) // each command carries its error
	for i, c := range batch {
		c.take(sent[i])
	}
}

func unknownScript(err error) bool {
	return err != nil && redis.HasErrorPrefix(err, "NOSCRIPT")
}
