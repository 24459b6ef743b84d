package transport

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/lifecycle"
)

// Pending are the commands that one server has not confirmed yet: releases of holds that were given up, and ends of
// attempts. One goroutine sends them, so a server that is down costs one goroutine and a few commands a second, however
// many calls have failed meanwhile.
//
// While the server answers, commands go side by side, a batch at a time. After an outage of the server one command goes
// first, with growing pauses, until it is answered. A command that is refused for a reason of its own waits by itself.
type Pending struct {
	background *Background
	UntilClose bool // Close does not wait for commands that fail

	mu       sync.Mutex
	commands []*PendingCommand   // in the order in which they are sent
	known    map[string]struct{} // ids of commands that have one
	sending  bool                // the goroutine runs
	added    chan struct{}       // holds one element after add
}

// PendingCommand is a command that may be sent any number of times.
type PendingCommand struct {
	ID    string // one command with that id is enough; "" is none
	Send  func(ctx context.Context) error
	Due   clock.Instant // not sent before
	Until clock.Instant // of no use after
	Ended func(err error)

	refusals Outage // of this command, while the server answers others
	err      error  // the last one
}

const (
	// MaxPending bounds the commands that wait for one server. Beyond it a hold is left to its TTL.
	MaxPending = 1 << 16
	// pendingBatch is how many of them are under way at a time.
	pendingBatch = 64
	// pendingPause is the longest pause between two commands to a server that does not answer: it is also how much
	// later than the server's return given-up holds are released.
	maxOutageInterval = 250 * time.Millisecond
	// refusedPause is the longest pause before a command is sent again that the server has refused.
	maxRefusedInterval = 15 * time.Second
)

func newPending(background *Background) *Pending {
	return &Pending{background: background, known: make(map[string]struct{}), added: make(chan struct{}, 1)}
}

// Add has a command sent until it is confirmed, cannot be cured, or is of no use any more. Then ended is called with
// the last error, unless the client was closed before. It reports false if the command was not taken.
func (p *Pending) Add(c *PendingCommand) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, twice := p.known[c.ID]; twice && c.ID != "" {
		return true
	}
	if len(p.commands) >= MaxPending {
		return false
	}
	p.commands = append(p.commands, c)
	p.known[c.ID] = struct{}{}
	lifecycle.Signal(p.added)
	if !p.sending {
		p.sending = p.background.Go(p.run)
	}
	return p.sending
}

// Run sends until nothing is left, or the client has been closed.
func (p *Pending) run(ctx context.Context) {
	var outage Outage // of the server
	limit := pendingBatch
	for {
		batch, wait, more := p.next(limit)
		switch {
		case !more:
			return
		case len(batch) == 0:
			p.await(ctx, wait, p.added)
		case p.try(ctx, batch):
			outage, limit = Outage{}, pendingBatch
		default:
			limit = 1
			wait, _ := outage.Pause(NoLimit, maxOutageInterval)
			p.await(ctx, wait, nil)
		}
		if ctx.Err() != nil || p.UntilClose && outage.failures > 0 && p.background.Operations.IsClosed() {
			p.drop()
			return
		}
	}
}

// await waits until a command is due, one is added, or Close begins; but not shorter once it has begun.
func (p *Pending) await(ctx context.Context, wait time.Duration, added <-chan struct{}) {
	closing := p.background.Operations.Closing
	if lifecycle.Closed(closing) {
		closing = nil
	}
	lifecycle.Pause(ctx, wait, added, closing)
}

// next takes out the commands to send now, and drops what is of no use any more: when the client closes, also what is not
// due yet. Without any to send, wait is the time to the next one. It returns false for more when nothing is left; then
// the goroutine has to end.
func (p *Pending) next(limit int) (batch []*PendingCommand, wait time.Duration, more bool) {
	now, closing := p.background.Now(), p.background.Operations.IsClosed()
	var dropped []*PendingCommand
	p.mu.Lock()
	kept := p.commands[:0]
	wait = maxRefusedInterval
	for _, c := range p.commands {
		switch {
		case c.Until <= now, closing && c.Due > now && c.refusals.failures == 0:
			dropped = append(dropped, c)
			delete(p.known, c.ID)
		case c.Due <= now && len(batch) < limit:
			batch = append(batch, c)
		default:
			kept = append(kept, c)
			wait = min(wait, max(c.Due.Sub(now), 0))
		}
	}
	clear(p.commands[len(kept):])
	p.commands = kept
	p.sending = len(batch)+len(kept) > 0
	more = p.sending
	p.mu.Unlock()
	for _, c := range dropped {
		c.end(c.err)
	}
	return batch, wait, more
}

// try sends commands side by side. It reports false if the server has answered none of them.
func (p *Pending) try(ctx context.Context, batch []*PendingCommand) (answered bool) {
	errs := DoGrouped(ctx, len(batch), func(ctx context.Context, i int) (err error) {
		err = ErrPanic // in a hook of the user's client
		p.background.recovered(func() { err = batch[i].Send(ctx) })
		return err
	})
	for i, c := range batch {
		switch c.err = errs[i]; {
		case c.err == nil || !retryable(c.err):
			answered = true
			p.remove(c)
			c.end(c.err)
		default:
			answered = answered || !Transient(c.err)
			p.requeue(c)
		}
	}
	return answered
}

// again puts a command behind the others. One that the server has refused is not due before a pause of its own.
func (p *Pending) requeue(c *PendingCommand) {
	if !Transient(c.err) {
		interval, _ := c.refusals.Pause(NoLimit, maxRefusedInterval)
		c.Due = p.background.Now().Add(interval)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.commands = append(p.commands, c)
}

func (p *Pending) remove(c *PendingCommand) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.known, c.ID)
}

// drop forgets all commands, and lets a later one start the goroutine anew.
func (p *Pending) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.commands, p.sending = nil, false
	clear(p.known)
}

func (c *PendingCommand) end(err error) {
	if c.Ended != nil {
		c.Ended(err)
	}
}

// retryable reports whether a command that failed with err is worth another try. It returns false for errors that time
// does not change: a closed client and a key of another type. It returns true for missing rights and a full server,
// which an operator may change.
func retryable(err error) bool {
	return !errors.Is(err, redis.ErrClosed) && !WrongType(err)
}

// Len returns the number of commands that are not confirmed.
func (p *Pending) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.known)
}
