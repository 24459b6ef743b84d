package core

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/lifecycle"
)

// pending are the commands that one server has not confirmed yet: releases of holds that were given up, and ends of
// attempts. One goroutine sends them, so a server that is down costs one goroutine and a few commands a second, however
// many calls have failed meanwhile.
//
// While the server answers, commands go side by side, a batch at a time. After an outage of the server one command goes
// first, with growing pauses, until it is answered. A command that is refused for a reason of its own waits by itself.
type pending struct {
	keeper     *keeper
	untilClose bool // Close does not wait for commands that fail

	mu       sync.Mutex
	commands []*pendingCommand   // in the order in which they are sent
	known    map[string]struct{} // ids of commands that have one
	sending  bool                // the goroutine runs
	added    chan struct{}       // holds one element after add
}

// pendingCommand is a command that may be sent any number of times.
type pendingCommand struct {
	id    string // one command with that id is enough; "" is none
	send  func(ctx context.Context) error
	due   clock.Instant // not sent before
	until clock.Instant // of no use after
	ended func(err error)

	own outage // of this command, while the server answers others
	err error  // the last one
}

const (
	// maxPending bounds the commands that wait for one server. Beyond it a hold is left to its TTL.
	maxPending = 1 << 16
	// pendingBatch is how many of them are under way at a time.
	pendingBatch = 64
	// pendingPause is the longest pause between two commands to a server that does not answer: it is also how much
	// later than the server's return given-up holds are released.
	pendingPause = 250 * time.Millisecond
	// refusedPause is the longest pause before a command is sent again that the server has refused.
	refusedPause = 15 * time.Second
)

func newPending(k *keeper) *pending {
	return &pending{keeper: k, known: make(map[string]struct{}), added: make(chan struct{}, 1)}
}

// add has a command sent until it is confirmed, cannot be cured, or is of no use any more. Then ended is called with
// the last error, unless the client was closed before. It reports false if the command was not taken.
func (p *pending) add(c *pendingCommand) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, twice := p.known[c.id]; twice && c.id != "" {
		return true
	}
	if len(p.commands) >= maxPending {
		return false
	}
	p.commands = append(p.commands, c)
	p.known[c.id] = struct{}{}
	lifecycle.Signal(p.added)
	if !p.sending {
		p.sending = p.keeper.background(p.run)
	}
	return p.sending
}

// run sends until nothing is left, or the client has been closed.
func (p *pending) run(ctx context.Context) {
	var trouble outage // of the server
	most := pendingBatch
	for {
		batch, wait, more := p.next(most)
		switch {
		case !more:
			return
		case len(batch) == 0:
			p.await(ctx, wait, p.added)
		case p.try(ctx, batch):
			trouble, most = outage{}, pendingBatch
		default:
			most = 1
			wait, _ := trouble.pause(forever, pendingPause)
			p.await(ctx, wait, nil)
		}
		if ctx.Err() != nil || p.untilClose && trouble.failures > 0 && p.keeper.operations.IsClosed() {
			p.drop()
			return
		}
	}
}

// await waits until a command is due, one is added, or Close begins; but not shorter once it has begun.
func (p *pending) await(ctx context.Context, wait time.Duration, added <-chan struct{}) {
	closing := p.keeper.operations.Closing
	if lifecycle.Closed(closing) {
		closing = nil
	}
	lifecycle.Pause(ctx, wait, added, closing)
}

// next takes out the commands to send now, and drops what is of no use any more: when the client closes, also what is not
// due yet. Without any to send, wait is the time to the next one. It returns false for more when nothing is left; then
// the goroutine has to end.
func (p *pending) next(most int) (batch []*pendingCommand, wait time.Duration, more bool) {
	now, closing := p.keeper.now(), p.keeper.operations.IsClosed()
	var over []*pendingCommand
	p.mu.Lock()
	kept := p.commands[:0]
	wait = refusedPause
	for _, c := range p.commands {
		switch {
		case c.until <= now, closing && c.due > now && c.own.failures == 0:
			over = append(over, c)
			delete(p.known, c.id)
		case c.due <= now && len(batch) < most:
			batch = append(batch, c)
		default:
			kept = append(kept, c)
			wait = min(wait, max(c.due.Sub(now), 0))
		}
	}
	clear(p.commands[len(kept):])
	p.commands = kept
	p.sending = len(batch)+len(kept) > 0
	more = p.sending
	p.mu.Unlock()
	for _, c := range over {
		c.end(c.err)
	}
	return batch, wait, more
}

// try sends commands side by side. It reports false if the server has answered none of them.
func (p *pending) try(ctx context.Context, batch []*pendingCommand) (answered bool) {
	errs := doGrouped(ctx, len(batch), func(ctx context.Context, i int) (err error) {
		err = errPanic // in a hook of the user's client
		p.keeper.recovered(func() { err = batch[i].send(ctx) })
		return err
	})
	for i, c := range batch {
		switch c.err = errs[i]; {
		case c.err == nil || !retryable(c.err):
			answered = true
			p.remove(c)
			c.end(c.err)
		default:
			answered = answered || !transient(c.err)
			p.again(c)
		}
	}
	return answered
}

// again puts a command behind the others. One that the server has refused is not due before a pause of its own.
func (p *pending) again(c *pendingCommand) {
	if !transient(c.err) {
		pause, _ := c.own.pause(forever, refusedPause)
		c.due = p.keeper.now().Add(pause)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.commands = append(p.commands, c)
}

func (p *pending) remove(c *pendingCommand) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.known, c.id)
}

// drop forgets all commands, and lets a later one start the goroutine anew.
func (p *pending) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.commands, p.sending = nil, false
	clear(p.known)
}

func (c *pendingCommand) end(err error) {
	if c.ended != nil {
		c.ended(err)
	}
}
