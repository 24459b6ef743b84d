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
	if err := config.check(); err != nil {
		return nil, err
	}
	lock := strategy(httprecord.Prefix+"check", config.Lock...)
	if err := lock.Check(); err != nil {
		return nil, err
	}
	return &Exclusive{guard: newGuard(config, seal.FactsOf(lock)), strategy: strategy}, nil
}

// Do calls run under the lock of the request's key. It waits for the lock as long as the config says, at most until
// ctx ends, and at most so long that an answer can still be written. Do returns nil after it has called run, and
// otherwise a [Conflict], the reason for the refusal.
//
// The context of run carries the lease. It ends when ctx ends or the lease is lost, and a lock of the same key in it
// enters again. The lease is kept until run returns, even if the client leaves. If run panics or calls runtime.Goexit,
// Do releases the lock, and the panic or Goexit continues. Run returns why it has failed, see [FailureOf], for hooks.
func (e *Exclusive) Do(ctx context.Context, req Request, run func(ctx context.Context) error) *Conflict {
	switch {
	case req.Key.IsZero():
		return e.Refuse(ctx, req.label(), ErrKeyRequired)
	case early(req.Header):
		return e.Refuse(ctx, req.label(), errEarly)
	}
	hash, asked := req.Key.HashWith(e.config.KeySecret), time.Now()
	h := hold{lock: e.strategy(httprecord.Prefix+hash, e.config.Lock...), work: workOf(req.label(), hash), answerBy: req.AnswerBy}
	var err error
	h.lease, err = e.lock(ctx, h.lock, hash, req)
	h.waited = time.Since(asked)
	if err == nil {
		if err = e.under(ctx, h, run); err == nil {
			return nil
		}
	}
	if e.opens(ctx, hash, err) {
		if err = e.open(ctx, h, err, run); err == nil {
			return nil
		}
	}
	return e.refuseLock(ctx, h, time.Since(asked), err)
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

// hold is a request and its lock.
type hold struct {
	work     core.Work
	lock     *core.Lock
	lease    *core.Lease // nil if it was not granted
	waited   time.Duration
	answerBy time.Time
}

// under calls run and releases the lock, however run ends. It returns an error only if it has not called run: because the
// client left, or the lease was lost, just when the lock was granted, or because a run without Redis is in progress here.
func (e *Exclusive) under(ctx context.Context, h hold, run func(ctx context.Context) error) (err error) {
	held, cancel := seal.FactsOf(h.lease).Bind(ctx)
	defer cancel()
	var ended *core.RunEnd // nil if it has not begun
	defer func() {
		e.release(ctx, h)
		if ended != nil {
			e.hooks.RunEnd(context.WithoutCancel(held), *ended)
		}
	}()
	for _, ctx := range []context.Context{ctx, held} {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	end := func() {}
	if !e.within(held, h.work.KeyHash) {
		if end, err = e.granted(question(h.work.KeyHash, h.lock, nil)); err != nil {
			return err
		}
	}
	defer end() // also if the hook panics
	held = e.hooks.RunStart(held, core.RunStart{Work: h.work, Token: h.lease.Token(), Waited: h.waited})
	letThroughInside(held)
	ended = &core.RunEnd{Work: h.work, Token: h.lease.Token()}
	e.run(held, h, end, run, ended)
	return nil
}

// exclusiveRun is the context key of a run behind a guard that fails open. The value is an *atomic.Bool, true once it is over.
type exclusiveRun struct {
	guard *Exclusive
	hash  string
}

// open calls run without a lock, unless it is known that the key is in use: then the error says so. A request within a run of the
// guard and key is no other one.
func (e *Exclusive) open(ctx context.Context, h hold, unavailable error, run func(ctx context.Context) error) (err error) {
	end := func() {}
	if !e.within(ctx, h.work.KeyHash) {
		if end, err = e.memory.Enter(question(h.work.KeyHash, h.lock, nil), unavailable); err != nil {
			return err
		}
	}
	defer end() // also if the hook panics
	e.incident(ctx, h.work, core.IncidentUnguarded, unavailable)
	ctx = e.hooks.RunStart(context.WithValue(ctx, degradedKey{}, true), core.RunStart{Work: h.work, Waited: h.waited})
	letThroughInside(ctx)
	ended := core.RunEnd{Work: h.work}
	defer func() { e.hooks.RunEnd(context.WithoutCancel(ctx), ended) }()
	e.run(ctx, h, end, run, &ended)
	return nil
}

// within reports whether ctx is that of a run of this guard and key, which goes on.
func (e *Exclusive) within(ctx context.Context, hash string) bool {
	over, _ := ctx.Value(exclusiveRun{e, hash}).(*atomic.Bool)
	return over != nil && !over.Load()
}

// run calls run, and then end. It takes down how run has ended.
func (e *Exclusive) run(ctx context.Context, h hold, end func(), run func(ctx context.Context) error, ended *core.RunEnd) {
	defer end()
	began := time.Now()
	ended.Panicked = true
	defer func() { ended.Held = time.Since(began) }()
	if e.config.FailOpen {
		over := new(atomic.Bool)
		defer over.Store(true)
		ctx = context.WithValue(ctx, exclusiveRun{e, h.work.KeyHash}, over)
	}
	ended.Err = run(ctx)
	ended.Panicked = false
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
		e.incident(ctx, h.work, core.IncidentLost, lost)
	case errors.Is(err, core.ErrNotHeld):
		e.incident(ctx, h.work, core.IncidentLost, fmt.Errorf("%w: %w", core.ErrLeaseLost, err))
	case err != nil:
		e.incident(ctx, h.work, core.IncidentUnrecorded, err)
	}
}

// refuseLock makes the Conflict of a request that did not get its lock.
func (e *Exclusive) refuseLock(ctx context.Context, h hold, waited time.Duration, err error) *Conflict {
	code := lockCode(ctx, err)
	if code == CodeLockConflict && seal.FactsOf(h.lock).Limit > 0 { // a semaphore's
		code = CodeLimitReached
	}
	c := e.config.conflict(code, err)
	c.KeyHash, c.Waited = h.work.KeyHash, waited
	return e.refused(ctx, h.work.Label, c)
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
