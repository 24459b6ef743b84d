package httpguard

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/httprecord"
	"github.com/holdfast-go/holdfast/internal/seal"
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
	lock := strategy(httprecord.Prefix+"check", config.Lock...)
	if err := lock.Check(); err != nil {
		return nil, err
	}
	return &Exclusive{guard: newGuard(config, seal.FactsOf(lock).Logger), strategy: strategy}, nil
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
	lock := e.strategy(httprecord.Prefix+hash, e.config.Lock...)
	lease, err := e.lock(ctx, lock, hash, req)
	if err == nil {
		h := hold{lock: lock, lease: lease, hash: hash, waited: time.Since(asked), answerBy: req.AnswerBy}
		if err = e.under(ctx, h, run); err == nil {
			return nil
		}
	}
	if e.opens(ctx, hash, err) {
		if err = e.open(ctx, hash, lock, err, run); err == nil {
			return nil
		}
	}
	return e.refuseLock(ctx, hash, seal.FactsOf(lock).Limit, time.Since(asked), err)
}

// lock takes the lock of a request, and waits for it as long as the request may.
func (e *Exclusive) lock(ctx context.Context, lock *core.Lock, hash string, req Request) (*core.Lease, error) {
	owner := req.answering()
	wait := e.wait(hash, owner, req.AnswerBy)
	if wait > 0 {
		defer e.gate.leave(hash, owner)
	}
	if !e.within(ctx, hash) {
		var err error
		if wait, err = e.await(ctx, question(hash, lock, nil), wait); err != nil {
			return nil, err
		}
	}
	return e.patience(wait).Lock(ctx, lock)
}

// hold is a lock that was granted to a request.
type hold struct {
	lock     *core.Lock
	lease    *core.Lease
	hash     string
	waited   time.Duration
	answerBy time.Time
}

// under calls run and releases the lock, however run ends. It returns an error only if it has not called run: because the
// client left, or the lease was lost, just when the lock was granted, or because a run without Redis is in progress here.
func (e *Exclusive) under(ctx context.Context, h hold, run func(ctx context.Context)) (err error) {
	held, cancel := bind(ctx, h.lease)
	defer cancel()
	defer func() { e.release(ctx, h) }()
	for _, ctx := range []context.Context{ctx, held} {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	end := func() {}
	if !e.within(held, h.hash) {
		if end, err = e.granted(question(h.hash, h.lock, nil)); err != nil {
			return err
		}
	}
	defer end() // also if the hook panics
	e.acquired(held, Acquired{KeyHash: h.hash, Token: h.lease.Token(), Waited: h.waited})
	letThroughInside(held)
	e.run(held, h.hash, end, run)
	return nil
}

// exclusiveRun is the context key of a run behind a guard that fails open. The value is an *atomic.Bool, true once it is over.
type exclusiveRun struct {
	guard *Exclusive
	hash  string
}

// open calls run without a lock, unless it is known that the key is in use: then the error says so. A request within a run of the
// guard and key is no other one.
func (e *Exclusive) open(
	ctx context.Context, hash string, lock *core.Lock, unavailable error, run func(ctx context.Context),
) (err error) {
	end := func() {}
	if !e.within(ctx, hash) {
		if end, err = e.memory.Enter(question(hash, lock, nil), unavailable); err != nil {
			return err
		}
	}
	defer end() // also if the hook panics
	e.failed(ctx, Failure{KeyHash: hash, Operation: "begin", Err: unavailable})
	letThroughInside(ctx)
	e.run(context.WithValue(ctx, degradedKey{}, true), hash, end, run)
	return nil
}

// within reports whether ctx is that of a run of this guard and key, which goes on.
func (e *Exclusive) within(ctx context.Context, hash string) bool {
	over, _ := ctx.Value(exclusiveRun{e, hash}).(*atomic.Bool)
	return over != nil && !over.Load()
}

// run calls run, and then end.
func (e *Exclusive) run(ctx context.Context, hash string, end func(), run func(ctx context.Context)) {
	defer end()
	if e.config.FailOpen {
		over := new(atomic.Bool)
		defer over.Store(true)
		ctx = context.WithValue(ctx, exclusiveRun{e, hash}, over)
	}
	run(ctx)
}

// bind returns the context of a lease, which ends with ctx too, and at its deadline.
func bind(ctx context.Context, lease *core.Lease) (context.Context, context.CancelFunc) {
	held, end := context.WithCancelCause(lease.Context())
	stop := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	loosen := func() { stop(); end(nil) }
	deadline, ok := ctx.Deadline()
	if !ok {
		return held, loosen
	}
	timed, cancel := context.WithDeadline(held, deadline)
	return timed, func() { loosen(); cancel() }
}

// release frees the lock, and tells of a lease that was lost while the handler ran.
//
// Why the release does not end with ctx: a client that leaves, or a timeout around the guard, would otherwise make a release
// fail that Redis is about to confirm.
func (e *Exclusive) release(ctx context.Context, h hold) {
	ctx = context.WithoutCancel(ctx)
	lost := context.Cause(h.lease.Context())
	bounded, cancel := context.WithTimeout(ctx, e.finishTimeout(h.answerBy))
	defer cancel()
	err := h.lease.Unlock(bounded)
	switch {
	case lost != nil:
		e.failed(ctx, Failure{KeyHash: h.hash, Operation: "run", Err: lost})
	case errors.Is(err, core.ErrNotHeld):
		e.failed(ctx, Failure{KeyHash: h.hash, Operation: "run", Err: fmt.Errorf("%w: %w", core.ErrLeaseLost, err)})
	case err != nil:
		e.failed(ctx, Failure{KeyHash: h.hash, Operation: "finish", Err: err})
	}
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
	return e.refused(ctx, c)
}

type degradedKey struct{}

// Degraded returns true if ctx is that of a request which runs unguarded, because Redis could not be asked and the
// guard fails open. There is no fencing token then.
func Degraded(ctx context.Context) bool {
	ctx = seal.ContextOf(ctx)
	degraded, _ := ctx.Value(degradedKey{}).(bool)
	r := runFrom(ctx)
	return degraded || r != nil && r.attempt == nil
}
