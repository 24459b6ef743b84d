package msglock

import (
	"context"

	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
)

// Exclusive returns a handler that does not handle two messages of one key at the same time, in any process. A message that arrives
// while another one is being handled is deferred, or waits as [core.WithWait] says. The strategy makes the locks: locks.Mutex, or
// locks.Fair for messages that wait. With locks.Limit(n), at most n messages of a key are handled at a time.
//
// Exclusive keeps no record: a message that is delivered again is handled again. Pass it the handler of [Once] to prevent that. It
// knows no consumers: all messages with one key exclude each other, and locks of that strategy for other work do not count.
//
// Exclusive panics if an argument is invalid: [NewExclusive] returns an error instead.
func Exclusive[M any](
	strategy core.Strategy, key KeyFunc[M], handler func(context.Context, M) error, opts ...Option,
) func(context.Context, M) error {
	return guards.Must(NewExclusive(strategy, key, handler, opts...))
}

// NewExclusive is [Exclusive] that returns an error instead of panicking.
func NewExclusive[M any](
	strategy core.Strategy, key KeyFunc[M], handler func(context.Context, M) error, opts ...Option,
) (func(context.Context, M) error, error) {
	g, err := newGuard(exclusivePlace, key, handler, opts)
	if err != nil {
		return nil, err
	}
	g.handler, g.label = handler, g.note
	if g.engine, err = guards.NewExclusive(workPlace, strategy, g.config); err != nil {
		return nil, err
	}
	return g.Handle, nil
}
