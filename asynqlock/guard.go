package asynqlock

import (
	"context"
	"errors"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// workPlace is the place of tasks in [core.Work].
const workPlace = "task"

// prefix keeps the locks and records of tasks apart from others.
const prefix = "asynq:"

// guard is what Once and Exclusive have in common. The engine lets a task run or not, and records its end. This package makes
// keys, decides how long a task waits, and answers asynq.
type guard struct {
	config
	guards.Config
	guards.Guard
	key  KeyFunc
	once *guards.Once // nil for Exclusive
}

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
	return guards.Must(NewExclusive(strategy, key, opts...))
}

// NewExclusive is [Exclusive] for settings that are known only at run time: it returns an error instead of panicking.
func NewExclusive(strategy core.Strategy, key KeyFunc, opts ...Option) (asynq.MiddlewareFunc, error) {
	g, err := newGuard(exclusivePlace, key, opts)
	if err != nil {
		return nil, err
	}
	exclusive, err := guards.NewExclusive(workPlace, strategy, g.Config)
	if err != nil {
		return nil, err
	}
	g.Guard = exclusive
	return func(next asynq.Handler) asynq.Handler {
		return asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
			v := g.visit(ctx, t)
			if g.line != nil && v.ask.NoKey == nil {
				v.limit = max(seal.FactsOf(exclusive.Of(v.ask)).Lock.Limit, 1)
			}
			return v.process(next)
		})
	}, nil
}

// Once returns a middleware that lets a task of each key take effect once. A task that arrives after an earlier run
// has completed is acknowledged without running. A task that arrives while another runs is deferred. Keys of tasks of
// different types are different. Records last for 24 hours: see [core.WithRetention].
//
// Use it for the mux or for one handler, not twice with one key, and give the server's config to [Configure].
//
// Once panics if an argument is invalid: [NewOnce] returns an error instead, and a [Guard] that operators can use.
func Once(locks *core.Client, key KeyFunc, opts ...Option) asynq.MiddlewareFunc {
	return guards.Must(NewOnce(locks, key, opts...)).Wrap
}

// NewOnce returns the guard of [Once] as a value, for operators and for settings that are known only at run time: an
// invalid argument is an error. It does no I/O and starts no goroutine, so a program for operators can make the guard of
// the workers, with the same arguments, only to call Peek, Resolve and Forget.
func NewOnce(locks *core.Client, key KeyFunc, opts ...Option) (*Guard, error) {
	g, err := newGuard(oncePlace, key, opts)
	if err != nil {
		return nil, err
	}
	if g.once, err = guards.NewOnce(workPlace, locks, g.Config); err != nil {
		return nil, err
	}
	g.Guard = g.once
	return &Guard{g}, nil
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
	return asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error { return g.guard.visit(ctx, t).process(next) })
}

var (
	errNoTask    = errors.New("holdfast: asynqlock: the task is nil: pass what asynq's Inspector has found")
	errZeroGuard = errors.New("holdfast: asynqlock: the guard is nil or the zero Guard: make it with NewOnce")
)

// Peek reads the record of a task, which has [core.StateNone] if there is none. The task is what an [asynq.Inspector]
// returns. It returns [ErrNoKey] and the errors of [core.Once.Peek].
func (g *Guard) Peek(ctx context.Context, info *asynq.TaskInfo) (core.Record, error) {
	switch {
	case g == nil || g.guard == nil:
		return core.Record{}, errZeroGuard
	case info == nil:
		return core.Record{}, errNoTask
	}
	v := g.guard.visit(ContextWithTask(ctx, info), asynq.NewTaskWithHeaders(info.Type, info.Payload, info.Headers))
	if v.ask.NoKey != nil {
		return core.Record{}, v.ask.NoKey
	}
	return g.guard.once.Of(v.ask).Peek(ctx)
}

// Resolve records that a task has taken effect: an operator has found out how a run of unknown outcome ended. The next
// delivery is acknowledged with that result, which may be nil. It applies to the record that Peek returned. It returns the errors of
// [core.Once.Resolve]: [core.ErrChanged] if the record has changed since, and [core.ErrInProgress] while the task runs.
func (g *Guard) Resolve(ctx context.Context, seen core.Record, result []byte) error {
	if g == nil || g.guard == nil {
		return errZeroGuard
	}
	return g.guard.once.ResolveSeen(ctx, prefix, seen, result)
}

// Forget deletes the record of a task, so that the task runs when it is delivered again: an operator has found out
// that it took no effect. It applies to the record that Peek returned. It returns the errors of [core.Once.Forget]:
// [core.ErrChanged] if the record has changed since, and [core.ErrInProgress] while the task runs.
func (g *Guard) Forget(ctx context.Context, seen core.Record) error {
	if g == nil || g.guard == nil {
		return errZeroGuard
	}
	return g.guard.once.ForgetSeen(ctx, prefix, seen)
}
