package asynqlock

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
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
	c := newConfig(oncePlace, opts)
	switch {
	case key == nil:
		return nil, errNoKeyFunc
	case c.err != nil:
		return nil, c.err
	case c.FailOpen && c.FailurePolicy == core.HoldFailures:
		return nil, errors.New("holdfast: asynqlock: FailOpen with core.HoldFailures: a task that must not run twice cannot run " +
			"without a record")
	}
	once, err := guards.NewOnce(workPlace, locks, c.Config)
	if err != nil {
		return nil, err
	}
	return &Guard{&guard{config: c, engine: once, key: key, once: once}}, nil
}

// Guard is a guard of [NewOnce] as a value. Wrap is the middleware. Peek, Resolve and Forget are for operators: they
// read and change the record of a task with the guard's client, key function and options, its secret included.
//
// The task is their argument, not the key, because the guard makes the key of a task from its type, payload, headers,
// ID and queue. Pass what an [asynq.Inspector] returns.
//
// The zero Guard guards nothing: Wrap panics, and the other methods return an error.
type Guard struct{ guard *guard }

// Wrap returns the guarded handler: it is an [asynq.MiddlewareFunc], so mux.Use(guard.Wrap) guards all tasks of a mux.
// It panics if g is nil or the zero Guard.
func (g *Guard) Wrap(next asynq.Handler) asynq.Handler {
	if g == nil || g.guard == nil {
		panic(errZeroGuard.Error())
	}
	return asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error { return g.guard.ofOnce(ctx, t).process(next) })
}

var (
	errNoTask    = errors.New("holdfast: asynqlock: the task is nil: pass what asynq's Inspector has found")
	errZeroGuard = errors.New("holdfast: asynqlock: the guard is nil or the zero Guard: make it with NewOnce")
	errNoKeyFunc = errors.New("holdfast: asynqlock: the key function is nil: pass ByPayload(\"order\") for instance")
)

// Peek reads the record of a task, which has [core.StateNone] if there is none. The task is what an [asynq.Inspector]
// returns. Errors are [ErrNoKey] and those of [core.Once.Peek].
func (g *Guard) Peek(ctx context.Context, info *asynq.TaskInfo) (core.Record, error) {
	once, err := g.recordOf(ctx, info)
	if err != nil {
		return core.Record{}, err
	}
	return once.Peek(ctx)
}

// Resolve records that a task has taken effect: an operator has found out how a run of unknown outcome ended. The next
// delivery is acknowledged with that result, which may be nil. It applies to the record that Peek returned. Errors are those of
// [core.Once.Resolve]: [core.ErrChanged] if the record has changed since, and [core.ErrInProgress] while the task runs.
func (g *Guard) Resolve(ctx context.Context, seen core.Record, result []byte) error {
	once, err := g.seen(seen)
	if err != nil {
		return err
	}
	return once.Resolve(ctx, seen, result)
}

// Forget deletes the record of a task, so that the task runs when it is delivered again: an operator has found out
// that it took no effect. It applies to the record that Peek returned. Errors are those of [core.Once.Forget]:
// [core.ErrChanged] if the record has changed since, and [core.ErrInProgress] while the task runs.
func (g *Guard) Forget(ctx context.Context, seen core.Record) error {
	once, err := g.seen(seen)
	if err != nil {
		return err
	}
	if err := once.Forget(ctx, seen); err != nil {
		return err
	}
	g.guard.once.Forget(seen.Key) // only now: after a refusal the run counts
	return nil
}

// seen returns the Once of a record that was read before.
func (g *Guard) seen(r core.Record) (*core.Once, error) {
	switch {
	case g == nil || g.guard == nil:
		return nil, errZeroGuard
	case !strings.HasPrefix(r.Key, prefix):
		return nil, fmt.Errorf("%w: %q is not the record of a task: pass what Peek returned", core.ErrInvalidName, r.Key)
	}
	return g.guard.once.Of(guards.Ask{Name: r.Key}), nil
}

// recordOf returns the Once of a task.
func (g *Guard) recordOf(ctx context.Context, info *asynq.TaskInfo) (*core.Once, error) {
	switch {
	case g == nil || g.guard == nil:
		return nil, errZeroGuard
	case info == nil:
		return nil, errNoTask
	}
	v := g.guard.ofOnce(ContextWithTask(ctx, info), asynq.NewTaskWithHeaders(info.Type, info.Payload, info.Headers))
	if v.ask.NoKey != nil {
		return nil, v.ask.NoKey
	}
	return g.guard.once.Of(v.ask), nil
}

// ofOnce describes a task of [Once]. The type is part of its key: what one task has done says nothing about another kind of task
// for the same order.
func (g *guard) ofOnce(ctx context.Context, t *asynq.Task) *visit {
	return g.visit(ctx, t, func(key string) string { return hash(g.KeySecret, join(t.Type(), key)) })
}
