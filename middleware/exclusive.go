package middleware

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/outage"
)

// Exclusive prevents two requests of one key from running at the same time, or more than n of them if its locks are
// semaphores ([core.Client.Limit]). Make it with [NewExclusive]. It is safe
// for concurrent use.
type Exclusive struct {
	guard
	strategy core.Strategy
}

// NewExclusive returns an Exclusive whose locks are made by strategy, or an error that names the wrong argument.
func NewExclusive(strategy core.Strategy, config Config) (*Exclusive, error) {
	if strategy == nil {
		return nil, errors.New("holdfast: the strategy is nil: pass the method of a client, like locks.Mutex")
	}
	if err := config.checkExclusive(); err != nil {
		return nil, err
	}
	if err := core.CheckLocker(strategy(lockPrefix+"check", config.Lock...)); err != nil {
		return nil, err
	}
	logger := func() *slog.Logger { return loggerOf(strategy) }
	return &Exclusive{guard: newGuard(config, logger), strategy: strategy}, nil
}

// Do calls run under the lock of the request's key. It waits for the lock as long as the config says, at most until
// ctx ends, and at most so long that an answer can still be written. Do returns nil after it has called run, and
// otherwise a [Conflict], the reason for the refusal.
//
// The context of run carries the lease. It ends when ctx ends or the lease is lost, and a lock of the same key in it
// enters again. The lease is kept until run returns, even if the client leaves. If run panics or calls runtime.Goexit,
// Do releases the lock, and the panic or Goexit continues.
func (e *Exclusive) Do(ctx context.Context, req Request, run func(ctx context.Context)) *Conflict {
	switch {
	case req.Key.IsZero():
		return e.Refuse(ctx, ErrKeyRequired)
	case early(req.Header):
		return e.Refuse(ctx, errEarly)
	}
	hash, asked := req.Key.HashWith(e.config.KeySecret), time.Now()
	wait := e.wait(hash, req.AnswerBy, preferred(req.Header))
	leave := sync.OnceFunc(func() {
		if wait > 0 {
			e.gate.leave(hash)
		}
	})
	defer leave()
	lock := e.strategy(lockPrefix+hash, e.config.Lock...)
	held := bounded{lock, e.patience(wait)}
	started := false
	released, cancel := context.WithCancel(ctx) // bounds the release too
	defer cancel()
	var finish *time.Timer
	err := core.Do(released, held, func(ctx context.Context) error {
		leave()
		if ctx.Err() != nil {
			return context.Cause(ctx) // the client left just when the lock was granted
		}
		started = true
		token, _ := core.TokenFrom(ctx)
		e.acquired(ctx, Acquired{KeyHash: hash, Token: token, Waited: time.Since(asked)})
		letThroughInside(ctx)
		began := time.Now()
		defer func() {
			e.holds.add(time.Since(began))
			finish = time.AfterFunc(e.config.FinishTimeout, cancel)
		}()
		run(ctx)
		return nil
	})
	if finish != nil {
		finish.Stop()
	}
	switch {
	case started && err != nil:
		e.failed(ctx, Failure{KeyHash: hash, Operation: "run", Err: err})
	case started:
	case e.config.FailOpen && outage.Is(err) && ctx.Err() == nil:
		e.failed(ctx, Failure{KeyHash: hash, Operation: "begin", Err: err})
		letThroughInside(ctx)
		run(context.WithValue(ctx, degradedKey{}, true))
	default:
		return e.refuseLock(ctx, hash, core.LimitOf(lock), time.Since(asked), err)
	}
	return nil
}

// refuseLock makes the Conflict of a request that did not get its lock. The limit is that of a semaphore, 0 for another
// lock.
func (e *Exclusive) refuseLock(ctx context.Context, hash string, limit int, waited time.Duration, err error) *Conflict {
	code := lockCode(ctx, err)
	if code == CodeLockConflict && limit > 0 {
		code = CodeLimitReached
	}
	c := e.config.conflict(code, err)
	c.KeyHash, c.Waited = hash, waited
	var held *core.NotAcquiredError
	if (c.Code == CodeLockConflict || c.Code == CodeLimitReached) && errors.As(err, &held) {
		c.RetryAfter = e.retryAfter(hash, held.RetryAfter)
	}
	return e.refused(ctx, c)
}

type degradedKey struct{}

// Degraded returns true if ctx is that of a request which runs unguarded, because Redis could not be asked and the
// guard fails open. There is no fencing token then.
func Degraded(ctx context.Context) bool {
	degraded, _ := ctx.Value(degradedKey{}).(bool)
	r := runFrom(ctx)
	return degraded || r != nil && r.attempt == nil
}

// bounded is a lock for which a request waits as long as its patience.
//
// Why: a request whose key is free need not wait, but a new connection to Redis can take longer than a short wait.
type bounded struct {
	core.Locker
	patience outage.Patience
}

func (b bounded) Lock(ctx context.Context, opts ...core.LockOption) (*core.Lease, error) {
	return b.patience.Lock(ctx, b.Locker, opts...)
}
