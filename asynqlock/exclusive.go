package asynqlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/outage"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// Exclusive returns a middleware that prevents two tasks of one key from running at the same time, on any server. A
// task that arrives while another runs is deferred, or waits as [core.WithWait] says. The strategy makes the locks:
// locks.Mutex, or locks.Fair for tasks that wait. With locks.Limit(n), at most n tasks of a key run at a time.
//
// Exclusive keeps no record: a task that is redelivered runs again, after the first run. Put [Once] in front to
// prevent that. Tasks of all types that have equal keys exclude each other: see [ByType] and [Keys].
//
// If many tasks share a key, add [WithLine]. Otherwise asynq redelivers each deferred task some ten seconds later, and
// only one of the tasks that arrive together runs.
//
// Exclusive panics if an argument is invalid: [NewExclusive] returns an error instead.
func Exclusive(strategy core.Strategy, key KeyFunc, opts ...Option) asynq.MiddlewareFunc {
	middleware, err := NewExclusive(strategy, key, opts...)
	if err != nil {
		panic(err)
	}
	return middleware
}

// NewExclusive is [Exclusive] for settings that are known only at run time: it returns an error instead of panicking.
func NewExclusive(strategy core.Strategy, key KeyFunc, opts ...Option) (asynq.MiddlewareFunc, error) {
	e := &exclusive{guard: guard{config: newConfig(exclusivePlace, opts), key: key}, strategy: strategy}
	switch {
	case strategy == nil:
		return nil, errors.New("holdfast: asynqlock: the strategy is nil: pass the method of a client, like locks.Mutex")
	case key == nil:
		return nil, errNoKeyFunc
	}
	if err := e.checkExclusive(); err != nil {
		return nil, err
	}
	lock := strategy(prefix+"check", e.lockOptions()...)
	if err := lock.Check(); err != nil {
		return nil, err
	}
	e.reportTo(seal.FactsOf(lock))
	return func(next asynq.Handler) asynq.Handler {
		return asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error { return e.process(ctx, t, next) })
	}, nil
}

type exclusive struct {
	guard
	strategy core.Strategy
}

func (e *exclusive) process(ctx context.Context, t *asynq.Task, next asynq.Handler) error {
	e.runs.come()
	defer e.runs.leave()
	v, err := e.visit(ctx, t, func(key string) string { return hash(e.KeySecret, key) })
	if err != nil {
		return v.keyless(t, next, err)
	}
	locker := e.strategy(prefix+v.hash, e.lockOptions()...)
	v.lock, v.limit = locker, max(seal.FactsOf(locker).Limit, 1)
	e.enter(v)
	lock := &patient{lock: locker, visit: v}
	r := &run{visit: v, gone: func() {}}
	started := false
	var failure error
	defer func() {
		if started {
			r.end()
			e.leave(r)
		}
	}()
	err = lock.do(ctx, func(ctx context.Context) error {
		if v.ctx.Err() != nil {
			return v.ctx.Err() // asynq has done with the task just when its turn had come
		}
		end, err := v.granted()
		if err != nil {
			return err
		}
		started, r.lease, r.gone = true, lock.lease, end
		failure = e.run(ctx, r, t, next)
		return nil // so that the error of Do is about the lease
	})
	switch {
	case started:
		return e.ended(r, failure, err)
	case e.FailOpen && v.outage(err):
		v.unguarded = err
		if r.gone, err = v.open(err); err == nil {
			started = true
			return e.ended(r, e.run(ctx, r, t, next), nil)
		}
		v.failed("begin", v.unguarded)
	case ctx.Err() != nil:
		return idle(v.over())
	}
	if v.lined {
		e.line.back(member(v.task.Queue, v.task.ID))
	}
	return idle(v.hindered(err))
}

// run calls the handler.
func (e *exclusive) run(ctx context.Context, r *run, t *asynq.Task, next asynq.Handler) error {
	r.begin()
	e.begun(r)
	ctx, stop := r.context(ctx)
	defer stop()
	returned := false
	defer func() {
		if !returned { // it panics, or has called runtime.Goexit
			r.ranFor(time.Since(r.began), core.StateNone, false, nil)
		}
	}()
	ctx = r.started(ctx)
	err := next.ProcessTask(ctx, t)
	returned = true
	return err
}

// ended returns what to tell asynq. A task that has succeeded has done so, whatever became of its lease: it would only
// be run once more.
func (e *exclusive) ended(r *run, failure, err error) error {
	verdict := failure
	if errors.Is(err, core.ErrLeaseLost) {
		r.failedIn("run", core.IncidentLost, err)
		if failure != nil {
			verdict = r.deferral(joined(failure, err))
		}
	}
	r.ranFor(time.Since(r.began), core.StateNone, true, verdict)
	return verdict
}

// patient is a lock for which a task waits for as long as it may.
type patient struct {
	lock  *core.Lock
	visit *visit
	lease *core.Lease
}

// do runs fn under the lock, as [core.Lock.Do] does.
func (p *patient) do(ctx context.Context, fn func(context.Context) error) error {
	err := p.visit.ask(func(ctx context.Context, wait time.Duration) error {
		if p.visit.lined {
			return p.inTurn(ctx, wait)
		}
		return p.request(ctx, wait)
	})
	if err != nil {
		return err
	}
	return seal.FactsOf(p.lease).Run(ctx, fn)
}

func (p *patient) request(ctx context.Context, wait time.Duration) (err error) {
	if wait < outage.ShortestWait {
		p.lease, err = p.lock.TryLock(ctx)
		return err
	}
	p.lease, err = p.lock.Lock(ctx, core.WithWait(wait))
	return err
}

// inTurn requests the lock for a task in a line, once it is the first one in this process.
func (p *patient) inTurn(ctx context.Context, wait time.Duration) error {
	v := p.visit
	busy := fmt.Errorf("%w: %d tasks of the key are before it", core.ErrNotAcquired, v.spot.ahead)
	switch first := v.spot.ahead < v.limit; {
	case wait == 0 && !first && !v.spot.again:
		return busy // also if the lock is free, which it is for a moment between two tasks
	case wait == 0 && first && v.limit > 1:
		// There should be a permit for each of the first ones. Why not in its place: the task would be deferred while
		// another one asks, although both of them can run.
		return p.request(ctx, 0)
	}
	place := v.guard.line.places.take(v.hash, member(v.task.Queue, v.task.ID), v.spot.came)
	defer place.leave()
	until := time.Now().Add(wait)
	for {
		if !place.await(ctx, time.Until(until)) {
			return busy
		}
		err := busy
		overtaken := place.request(ctx, func(ctx context.Context) { err = p.request(ctx, time.Until(until)) })
		if err == nil || !overtaken {
			return err
		}
	}
}
