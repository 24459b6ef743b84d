package asynqlock

import (
	"context"
	"errors"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
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
	c := newConfig(exclusivePlace, opts)
	switch {
	case key == nil:
		return nil, errNoKeyFunc
	case c.err != nil:
		return nil, c.err
	case c.line != nil && c.Wait > 0:
		return nil, errors.New("holdfast: asynqlock: core.WithWait with WithLine: the line decides which tasks wait in workers")
	}
	exclusive, err := guards.NewExclusive(workPlace, strategy, c.Config)
	if err != nil {
		return nil, err
	}
	g := &guard{config: c, engine: exclusive, key: key}
	return func(next asynq.Handler) asynq.Handler {
		return asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
			v := g.visit(ctx, t, func(key string) string { return hash(g.KeySecret, key) })
			if g.line != nil && v.ask.NoKey == nil {
				v.limit = max(seal.FactsOf(exclusive.Of(v.ask)).Limit, 1)
			}
			return v.process(next)
		})
	}, nil
}
