package transport

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
)

const (
	// OutageLimit is how long a waiting Lock continues while Redis does not answer.
	OutageLimit = 5 * time.Second
	// NoLimit is the limit of a caller that continues until its context ends.
	NoLimit = time.Duration(math.MaxInt64)
	// minTries is how often a command is sent at least before it fails, unless OutageLimit has passed since its first failure.
	// It is a minimum because the first tries may fail at once, such as on old connections or during a failover. The exception
	// is there because each try may wait for AnswerTimeout if the server is silent.
	minTries = 4
	// minLimit is the least limit of an [Outage], because a server that answers with an error, such as READONLY during a
	// failover, needs no time for it, so minTries would have passed within 50 ms.
	minLimit = time.Second
	// FirstRetryInterval is the interval after the first failure. Each further one is twice as long as the one before, up to
	// a maximum. All are shortened by up to half at random.
	FirstRetryInterval = 10 * time.Millisecond
	maxRetryInterval   = time.Second
	// MaxRequestRetryInterval is the maximum for a request, because it continues for OutageLimit only.
	MaxRequestRetryInterval = 250 * time.Millisecond
	// MaxMigrationRetryInterval is the maximum while a slot moves from one master of a Cluster to another. It is short, so
	// that the locks of the slot can be used soon after the move.
	MaxMigrationRetryInterval = 100 * time.Millisecond
)

// Outage counts failures in a row. The zero value has none. It must be set to zero after a success.
type Outage struct {
	failures int
	Began    time.Time // of the first failure
}

// Pause records a failure. It returns how long to wait before the next try, maxInterval at most. It returns false if there
// must be no next try: limit has passed since the first failure, minLimit at least, and there were minTries of them or OutageLimit
// has passed too.
func (o *Outage) Pause(limit, maxInterval time.Duration) (time.Duration, bool) {
	if o.failures == 0 {
		o.Began = time.Now()
	}
	o.failures++
	failing := time.Since(o.Began)
	if failing >= max(limit, minLimit) && (o.failures >= minTries || failing >= OutageLimit) {
		return 0, false
	}
	interval := min(FirstRetryInterval<<min(o.failures-1, 10), maxInterval)
	return interval/2 + rand.N(interval/2), true
}

// Retry calls try until it succeeds, its error is not retryable, or ctx ends. It also ends when [Outage.Pause] allows no next try.
// It returns the error of the last try, never the error of ctx. While a slot migrates, the limit is OutageLimit at least.
func Retry(ctx context.Context, limit time.Duration, retryable func(error) bool, try func() error) error {
	var outage, migration Outage
	for {
		err := try()
		if err == nil || !retryable(err) || ctx.Err() != nil {
			return err
		}
		var interval time.Duration
		var more bool
		if SlotMigrating(err) {
			outage = Outage{} // Redis has answered
			interval, more = migration.Pause(max(limit, OutageLimit), MaxMigrationRetryInterval)
		} else {
			interval, more = outage.Pause(limit, maxRetryInterval)
		}
		if !more {
			return err
		}
		keepalive.Pause(ctx, interval, nil, nil)
		if ctx.Err() != nil {
			return err
		}
	}
}

// RetryUntilAnswered sends an idempotent command until it is answered, until ctx ends, or as [Retry] does without a limit. While a
// slot migrates, it continues for OutageLimit. Each try has a timeout, so that the next one can use another connection. The
// first is FirstAnswerTimeout, and each further one twice as long, up to AnswerTimeout.
func RetryUntilAnswered(ctx context.Context, command func(context.Context) error) error {
	timeout := FirstAnswerTimeout
	return Retry(ctx, 0, Transient, func() error {
		tryCtx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		timeout = min(2*timeout, AnswerTimeout) // there can be many tries while a slot moves
		return command(tryCtx)
	})
}

// Pending has the commands that one server has not confirmed yet: releases of holds that were given up, and ends of
// attempts. One goroutine sends them. So a server that is down costs one goroutine and a few commands a second, however
// many calls have failed meanwhile. It is safe for concurrent use.
//
// A command passes through these states:
//
//	Add ──► waiting until Due ──► in flight ── confirmed, or failed for good ──► ended
//	          │      ▲               │
//	          │      └── retryable ──┘
//	          └──── Until has passed, or the client closes before Due ─────────► ended
//
// While the client closes, a command that can do nothing yet (ErrNotYet) is sent once more and then dropped. One that has become
// Moot is dropped if it was sent in vain, or if the server does not answer.
//
// While the server answers, up to pendingBatch commands are in flight. In an outage there is only one, with growing
// intervals, until it is answered. A command that the server refuses while it answers others waits for an interval of its
// own.
type Pending struct {
	background *Background
	// UntilClose is true if Close must not wait for commands that fail. It must be set before the first Add.
	UntilClose bool

	added chan struct{} // holds one element after Add

	mu sync.Mutex

	// Guarded by mu.
	commands []*PendingCommand   // that wait, in the order in which they are sent
	known    map[string]struct{} // IDs of all commands that wait or are in flight
	sending  bool                // true while the goroutine runs
}

// PendingCommand is a command that may be sent any number of times.
type PendingCommand struct {
	ID    string                          // Add ignores a second command with the same ID; "" is none
	Send  func(ctx context.Context) error // sends the command once
	Due   keepalive.Instant               // the command is not sent before
	Until keepalive.Instant               // the command is dropped after
	Moot  keepalive.Instant               // Close does not wait for the command after; zero is never
	Ended func(err error)                 // called at the end with the last error, nil if confirmed; may be nil

	inFlight    bool   // true while a goroutine of the Pending has the command
	refusals    Outage // counts the refusals of this command
	err         error  // of the last sending
	sentClosing bool   // true if it was sent while the client was closing
}

const (
	// MaxPending bounds the commands that wait for one server. A hold whose release is beyond that expires with its TTL.
	MaxPending = 1 << 16
	// pendingBatch is how many of them may be in flight at a time.
	pendingBatch = 64
	// maxOutageInterval is the longest interval between two commands to a server that does not answer. So it is also how
	// long after the return of the server the release of holds begins.
	maxOutageInterval = 250 * time.Millisecond
	// maxRefusedInterval is the longest interval between two sendings of a command that the server has refused.
	maxRefusedInterval = 15 * time.Second
)

// newPending returns a Pending without commands and without a goroutine.
func newPending(background *Background) *Pending {
	return &Pending{background: background, known: make(map[string]struct{}), added: make(chan struct{}, 1)}
}

// Add has a command sent until the server confirms it, it fails for good, or its time Until has passed. Then Ended is
// called. It is not called for a command that is dropped because the client closes.
//
// Add returns false if it has not taken the command: there are MaxPending commands, or the client has finished. It returns
// true for an ID that is there already.
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
	keepalive.Signal(p.added)
	if !p.sending {
		p.sending = p.background.Go(p.run)
	}
	return p.sending
}

// run sends commands until none is left, or until ctx ends. If a hook of the user's client ends the goroutine by [runtime.Goexit], another
// one goes on.
func (p *Pending) run(ctx context.Context) {
	var outage Outage
	limit := pendingBatch
	var batch []*PendingCommand
	ended := false
	defer func() {
		if !ended {
			p.restart(batch)
		}
	}()
	for {
		var wait time.Duration
		var more bool
		batch, wait, more = p.next(limit, outage.failures > 0)
		switch {
		case !more:
			ended = true
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
			ended = true
			p.drop()
			return
		}
	}
}

// restart puts commands back during which the goroutine was ended, each after an interval of its own, and starts another goroutine.
func (p *Pending) restart(batch []*PendingCommand) {
	for _, c := range batch {
		if c.inFlight { // only this goroutine has set it
			c.err = errExited
			p.requeue(c, true)
		}
	}
	p.mu.Lock()
	p.sending = p.background.Go(p.run)
	sending := p.sending
	p.mu.Unlock()
	if !sending {
		p.drop()
	}
}

// await waits until a command is due, one is added, or Close begins. After Close has begun it waits like before, so that
// retries keep their intervals.
func (p *Pending) await(ctx context.Context, wait time.Duration, added <-chan struct{}) {
	closing := p.background.Operations.Closing
	if keepalive.Closed(closing) {
		closing = nil
	}
	keepalive.Pause(ctx, wait, added, closing)
}

// next takes out the commands to send now, at most limit. It drops those whose time Until has passed. While the client
// closes, it also drops those whose first Due is still to come, and those that are Moot, without calling Ended. A
// command that can do nothing yet is then sent at once, and dropped in the same way if that was in vain.
//
// If the batch is empty, wait is the time until the next command is due. If more is false, no command is left, and the
// caller must end its goroutine.
func (p *Pending) next(limit int, outage bool) (batch []*PendingCommand, wait time.Duration, more bool) {
	now, closing := p.background.Now(), p.background.Operations.IsClosed()
	var expired []*PendingCommand
	p.mu.Lock()
	kept := p.commands[:0]
	wait = maxRefusedInterval
	for _, c := range p.commands {
		lastTry := closing && errors.Is(c.err, ErrNotYet)
		switch {
		case c.Until <= now:
			expired = append(expired, c)
			delete(p.known, c.ID)
		case closing && c.Due > now && c.refusals.failures == 0, lastTry && c.sentClosing,
			closing && c.Moot != 0 && c.Moot <= now && (outage || c.err != nil):
			delete(p.known, c.ID)
		case (c.Due <= now || lastTry) && len(batch) < limit:
			c.sentClosing, c.inFlight = closing, true
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
	for _, c := range expired {
		c.end(c.err)
	}
	return batch, wait, more
}

// try sends commands concurrently. It returns false if the server has answered none of them.
func (p *Pending) try(ctx context.Context, batch []*PendingCommand) (answered bool) {
	errs := DoGrouped(ctx, len(batch), func(ctx context.Context, i int) (err error) {
		err = ErrPanic // in a hook of the user's client
		p.background.Recovered(func() { err = batch[i].Send(ctx) })
		return err
	})
	for i, c := range batch {
		switch c.err = errs[i]; {
		case c.err == nil || !retryable(c.err):
			answered = true
			if c.err == nil {
				p.background.Confirmed()
			}
			p.remove(c)
			c.end(c.err)
		default:
			answered = answered || !Transient(c.err)
			p.requeue(c, !Transient(c.err)) // the server has refused it
		}
	}
	return answered
}

// requeue puts a command behind the others. If alone is true, it is due after an interval of its own.
func (p *Pending) requeue(c *PendingCommand, alone bool) {
	if alone {
		interval, _ := c.refusals.Pause(NoLimit, maxRefusedInterval)
		c.Due = p.background.Now().Add(interval)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c.inFlight = false
	p.commands = append(p.commands, c)
}

// remove forgets the ID of a command that has ended.
func (p *Pending) remove(c *PendingCommand) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.inFlight = false
	delete(p.known, c.ID)
}

// drop forgets all commands without calling Ended. A later Add starts a new goroutine.
func (p *Pending) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.commands, p.sending = nil, false
	clear(p.known)
}

// end calls Ended, if it is set.
func (c *PendingCommand) end(err error) {
	if c.Ended != nil {
		c.Ended(err)
	}
}

// retryable returns true if a command that failed with err is worth another try. It returns false for errors that last: a
// closed client and a key of another type. It returns true for missing rights and a full server, because an operator may
// change that.
func retryable(err error) bool {
	return !errors.Is(err, redis.ErrClosed) && !WrongType(err)
}

// Len returns the number of IDs of commands that wait or are in flight. Commands without an ID count as one.
func (p *Pending) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.known)
}
