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

	onReply func() // called when a server has answered, often, and must not take long; may be nil

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
	return e.doAcked(ctx, ack{}, s, keys, args...)
}

// doAcked is do for a script whose success counts only if replicas acknowledge it, see replicaack.go.
func (e *executor) doAcked(ctx context.Context, a ack, s *script, keys []string, args ...any) (any, error) {
	answered := make(chan struct{})
	c := &call{ctx: ctx, script: s, keys: keys, args: args, ack: a, done: func(*call) { close(answered) }}
	c.way = e.nodes.of(keys[0])
	submit(ctx, c.way.laneFor(c), c)
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
	batches := make(map[*lane][]*call, 1)
	for _, c := range calls {
		c.way = e.nodes.of(c.keys[0])
		l := c.way.renewalLaneFor(c)
		batches[l] = append(batches[l], c)
	}
	for l, batch := range batches {
		l.submit(batch...)
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
	if e.onReply != nil && replied(batch[0].err) {
		e.onReply()
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
	switch {
	case batch[0].ack.wanted():
		e.sendAcked(batch)
	case len(batch) == 1:
		e.sendAlone(batch[0])
	default:
		sendTogether(batch, e.pipeline)
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
func sendTogether(batch []*call, pipeline func([]*call, verb)) {
	pipeline(batch, (*script).evalsha)
	var unknown []*call
	for _, c := range batch {
		if unknownScript(c.err) {
			unknown = append(unknown, c)
		}
	}
	if len(unknown) > 0 {
		pipeline(unknown, (*script).eval)
	}
}

func (e *executor) pipeline(batch []*call, command verb) { pipeline(e.rdb, batch, command) }

// pipeline sends a batch, and behind it what else there is, on one connection (in a Cluster, one for each master).
func pipeline(rdb redis.UniversalClient, batch []*call, command verb, behind ...attempt) {
	ctx := context.Background() // no caller's: each leaves by itself when its own ends
	pipe := rdb.Pipeline()
	sent := make([]attempt, len(batch))
	for i, c := range batch {
		sent[i] = command(c.script, c.keys, c.args)
		if c.asking {
			_ = pipe.Process(ctx, attempt{redis.NewCmd(ctx, "asking")})
		}
		_ = pipe.Process(ctx, sent[i])
	}
	for _, a := range behind {
		_ = pipe.Process(ctx, a)
	}
	_, _ = pipe.Exec(ctx) // each command carries its error
	for i, c := range batch {
		c.take(sent[i])
	}
}

func unknownScript(err error) bool {
	return err != nil && redis.HasErrorPrefix(err, "NOSCRIPT")
}
