package middleware

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

const (
	// answerTime is what is kept of the time until the server stops writing, for the answer itself.
	answerTime = time.Second
	// askTime bounds how long Redis may take to answer a request that does not wait for the lock.
	askTime = time.Second
)

// Exclusive lets no two requests of one key run at the same time. Make it with [NewExclusive]. It is safe for
// concurrent use.
type Exclusive struct {
	strategy core.Strategy
	config   Config
}

// NewExclusive returns an Exclusive whose locks are made by strategy, or an error that names what is wrong
// with the arguments.
func NewExclusive(strategy core.Strategy, config Config) (*Exclusive, error) {
	if strategy == nil {
		return nil, errors.New("holdfast: the strategy is nil: pass the method of a client, like locks.Mutex")
	}
	if err := config.check(); err != nil {
		return nil, err
	}
	return &Exclusive{strategy: strategy, config: config}, nil
}

// Guards reports whether requests of that method are guarded.
func (e *Exclusive) Guards(method string) bool { return e.config.guards(method) }

// Do calls run under the lock of key, waiting for it at most as long as the config says, until ctx ends, and
// so that an answer can still be written by answerBy, unless that is zero. Instead of calling run it may
// return a [Conflict], the reason not to; it returns nil after run was called.
//
// The context of run carries the lease: it ends when ctx ends or the lease is lost, and a lock of the same
// key in it enters again. The lease is kept until run returns, whatever becomes of the client. If run
// panics or calls runtime.Goexit, the lock is released and that goes on.
func (e *Exclusive) Do(ctx context.Context, key Key, answerBy time.Time, run func(ctx context.Context)) *Conflict {
	if key.IsZero() {
		return e.Refuse(ctx, ErrKeyRequired)
	}
	hash := key.Hash()
	asked := time.Now()
	started := false
	held := bounded{Locker: e.strategy(lockPrefix+hash, e.config.Lock...), wait: e.wait(answerBy)}
	err := core.Do(ctx, held, func(ctx context.Context) error {
		if ctx.Err() != nil {
			return context.Cause(ctx) // the client left just when the lock was granted
		}
		started = true
		token, _ := core.TokenFrom(ctx)
		e.acquired(ctx, Acquired{KeyHash: hash, Token: token, Waited: time.Since(asked)})
		run(ctx)
		return nil
	})
	switch {
	case started && err != nil:
		e.failed(ctx, Failure{KeyHash: hash, Err: err})
	case started:
	case e.config.FailOpen && outage(err) && ctx.Err() == nil:
		e.failed(ctx, Failure{KeyHash: hash, Err: err})
		run(context.WithValue(ctx, degradedKey{}, true))
	default:
		c := e.config.conflict(lockCode(ctx, err), err)
		c.KeyHash, c.Waited = hash, time.Since(asked)
		return e.refused(ctx, c)
	}
	return nil
}

// Refuse makes the Conflict of a request that failed before Do, by its key or by its body.
func (e *Exclusive) Refuse(ctx context.Context, err error) *Conflict {
	return e.refused(ctx, e.config.conflict(requestCode(ctx, err), err))
}

func (e *Exclusive) refused(ctx context.Context, c *Conflict) *Conflict {
	if e.config.Hooks.Refused != nil {
		e.config.Hooks.Refused(ctx, c)
	}
	return c
}

func (e *Exclusive) acquired(ctx context.Context, a Acquired) {
	if e.config.Hooks.Acquired != nil {
		e.config.Hooks.Acquired(ctx, a)
	}
}

func (e *Exclusive) failed(ctx context.Context, f Failure) {
	if e.config.Hooks.Failed != nil {
		e.config.Hooks.Failed(ctx, f)
	}
}

func (e *Exclusive) wait(answerBy time.Time) time.Duration {
	if answerBy.IsZero() {
		return e.config.Wait
	}
	return max(0, min(e.config.Wait, time.Until(answerBy)-answerTime))
}

// outage reports whether err tells of Redis rather than of another holder, or of a mistake in the program,
// which would mean to run without locks for ever.
func outage(err error) bool {
	if errors.Is(err, core.ErrUnavailable) {
		return true
	}
	for _, other := range []error{
		core.ErrNotAcquired, core.ErrLeaseLost, core.ErrInvalidName, core.ErrInvalidOption, core.ErrUpgrade,
	} {
		if errors.Is(err, other) {
			return false
		}
	}
	return true
}

type degradedKey struct{}

// Degraded reports whether ctx is that of a request which runs without lock, because the lock could not be
// asked for and the guard fails open. There is no fencing token then.
func Degraded(ctx context.Context) bool {
	degraded, _ := ctx.Value(degradedKey{}).(bool)
	return degraded
}

// bounded is a lock for which nobody waits longer than wait, nor for an answer of Redis if that is 0.
type bounded struct {
	core.Locker
	wait time.Duration
}

func (b bounded) Lock(ctx context.Context, opts ...core.LockOption) (*core.Lease, error) {
	if b.wait > 0 {
		return b.Locker.Lock(ctx, append(opts, core.WithWait(b.wait))...)
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	return b.Locker.TryLock(ctx, opts...)
}
