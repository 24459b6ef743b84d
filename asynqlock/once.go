package asynqlock

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/outage"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/internal/throttle"
)

// Once returns a middleware that lets a task of each key take effect once. A task that arrives after an earlier run
// has completed is acknowledged without running. A task that arrives while another runs is deferred. Keys of tasks of
// different types are different. Records last for 24 hours: see [core.WithRetention].
//
// Use it for the mux or for one handler, not twice with one key, and give the server's config to [Configure].
//
// Once panics if an argument is invalid: [NewOnce] returns an error instead, and a [Guard] that operators can use.
func Once(locks *core.Client, key KeyFunc, opts ...Option) asynq.MiddlewareFunc {
	g, err := NewOnce(locks, key, opts...)
	if err != nil {
		panic(err)
	}
	return g.Wrap
}

// NewOnce returns the guard of [Once] as a value, for operators and for settings that are known only at run time: an
// invalid argument is an error. It does no I/O and starts no goroutine, so a program for operators can make the guard of
// the workers, with the same arguments, only to call Peek, Resolve and Forget.
func NewOnce(locks *core.Client, key KeyFunc, opts ...Option) (*Guard, error) {
	o := &once{guard: guard{config: newConfig(oncePlace, opts), key: key}, locks: locks}
	switch {
	case locks == nil:
		return nil, errNoClient
	case key == nil:
		return nil, errNoKeyFunc
	}
	if err := o.checkOnce(); err != nil {
		return nil, err
	}
	o.options = o.onceOptions()
	o.reportTo(seal.FactsOf(locks))
	return &Guard{o}, nil
}

// Guard is a guard of [NewOnce] as a value. Wrap is the middleware. Peek, Resolve and Forget are for operators: they
// read and change the record of a task with the guard's client, key function and options, its secret included.
//
// The task is their argument, not the key, because the guard makes the key of a task from its type, payload, headers,
// ID and queue. Pass what an [asynq.Inspector] returns.
//
// The zero Guard guards nothing: Wrap panics, and the other methods return an error.
type Guard struct{ once *once }

// Wrap returns the guarded handler: it is an [asynq.MiddlewareFunc], so mux.Use(guard.Wrap) guards all tasks of a mux.
// It panics if g is nil or the zero Guard.
func (g *Guard) Wrap(next asynq.Handler) asynq.Handler {
	if g == nil || g.once == nil {
		panic(errZeroGuard.Error())
	}
	return asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error { return g.once.process(ctx, t, next) })
}

var (
	errNoClient  = errors.New("holdfast: asynqlock: the client is nil: pass that of core.New")
	errNoTask    = errors.New("holdfast: asynqlock: the task is nil: pass what asynq's Inspector has found")
	errZeroGuard = errors.New("holdfast: asynqlock: the guard is nil or the zero Guard: make it with NewOnce")
	errNoKeyFunc = errors.New("holdfast: asynqlock: the key function is nil: pass ByPayload(\"order\") for instance")
)

// arrive makes the key of a task.
func (o *once) arrive(ctx context.Context, t *asynq.Task) (*visit, error) {
	v, err := o.visit(ctx, t, func(key string) string { return recordHash(o.KeySecret, t, key) })
	if err == nil && o.comparesPayload(v) {
		v.fingerprint = fingerprint(o.KeySecret, t)
	}
	return v, err
}

type once struct {
	guard
	locks   *core.Client
	options []core.OnceOption
	replays throttle.Throttle // of what is logged
}

func (o *once) process(ctx context.Context, t *asynq.Task, next asynq.Handler) error {
	o.runs.come()
	defer o.runs.leave()
	v, err := o.arrive(ctx, t)
	switch {
	case err != nil:
		return v.keyless(t, next, err)
	case o.entered(v):
		return next.ProcessTask(ctx, t)
	}
	end := func() {}
	attempt, err := o.begin(v)
	if err == nil {
		if end, err = v.granted(); err != nil {
			_ = attempt.Release(ctx)
		}
	}
	if o.FailOpen && v.outage(err) {
		v.unguarded = err
		if end, err = v.open(err); err == nil {
			return o.run(v, t, next, nil, end)
		}
		v.failed("begin", v.unguarded)
	}
	var done *core.CompletedError
	switch {
	case err == nil:
		return o.run(v, t, next, attempt, end)
	case errors.As(err, &done):
		return o.replay(v, t, done.Record)
	}
	return idle(o.turnAway(v, t, err))
}

// turnAway does with a task that may not run what the reason and the options say.
func (o *once) turnAway(v *visit, t *asynq.Task, err error) error {
	switch {
	case errors.Is(err, core.ErrFingerprintMismatch):
		return v.refused(ReasonKeyReused, o.mismatch(v.task, err))
	case errors.Is(err, core.ErrOutcomeUnknown):
		if o.unknown.First(v.hash) { // a run whose process crashed, for instance
			v.held()
		}
		return v.refused(ReasonUnknown, err)
	case v.ctx.Err() != nil:
		return v.over()
	case isBusy(err):
		return o.meet(v, t, err)
	}
	return v.hindered(err)
}

// entered reports whether the task is in a run of this key already: it would wait for itself.
func (o *once) entered(v *visit) bool {
	for r := runFrom(v.ctx); r != nil; r = r.around {
		if r.client == o.locks && r.hash == v.hash {
			return true
		}
	}
	return false
}

// of returns the Once of a task.
func (o *once) of(v *visit, more ...core.OnceOption) *core.Once {
	options := append(slices.Clone(o.options), core.WithNote(note(v.task)), core.WithLabel(label(v.task)))
	if v.fingerprint != nil {
		options = append(options, core.WithFingerprint(v.fingerprint))
	}
	return o.locks.Once(recordName(v.hash), append(options, more...)...)
}

func (o *once) begin(v *visit) (attempt *core.Attempt, err error) {
	err = v.ask(func(ctx context.Context, wait time.Duration) (err error) {
		attempt, err = o.of(v, core.WithWait(wait)).Begin(ctx)
		return err
	})
	if err == nil && v.ctx.Err() != nil { // asynq has done with the task just when its turn had come
		_ = attempt.Release(v.ctx)
		return nil, v.ctx.Err()
	}
	return attempt, err
}

// meet does with a task that another one is in the way of what the options say.
func (o *once) meet(v *visit, t *asynq.Task, busy error) error {
	if o.conflict == conflictRetry {
		return v.deferred(busy)
	}
	ctx, cancel := context.WithTimeout(v.ctx, outage.AskTimeout)
	defer cancel()
	record, err := o.of(v).Peek(ctx)
	switch {
	case err != nil || record.State != core.StateRunning || sameTask(record.Note, v.task):
		return v.deferred(busy)
	case o.conflict == conflictReject:
		return v.refused(ReasonRejected, busy)
	}
	v.ran()
	v.notRun(core.NotRun{Reason: ReasonSkipped, Err: busy})
	return nil
}

// run calls the handler, records how it ended, and then calls end. Without attempt it has no record.
func (o *once) run(v *visit, t *asynq.Task, next asynq.Handler, attempt *core.Attempt, end func()) error {
	r := &run{visit: v, client: o.locks, attempt: attempt, gone: end}
	r.once = func(more ...core.OnceOption) *core.Once { return o.of(v, more...) }
	ctx, cancel := v.ctx, context.CancelFunc(func() {})
	if attempt != nil {
		r.lease = attempt
		ctx, cancel = seal.AttemptOf(attempt).Bind(v.ctx)
	}
	defer cancel()
	r.begin()
	defer r.end()
	ctx, stop := r.context(ctx)
	defer stop()
	returned := false
	defer func() {
		if !returned { // it panics, or has called runtime.Goexit
			_ = r.finish(t, false, nil)
		}
	}()
	r.word.Set(seal.Released, "") // should the hook panic
	ctx = r.started(ctx)
	r.word.Set(seal.Undecided, "")
	err := next.ProcessTask(ctx, t)
	returned = true
	return r.finish(t, true, err)
}
