package msglock

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// KeyFunc returns the key of a message. An error parks the message with [ErrNoKey].
type KeyFunc[M any] = func(ctx context.Context, m M) (string, error)

// Once returns a handler that lets a message of each key take effect once for a consumer. The error of a message that does not need
// to be delivered again is nil, whether its handler was called or an earlier message with its key has completed: see [Disposition].
//
// Once panics if an argument is invalid: [NewOnce] returns an error instead, and a [Guard] that operators can use.
func Once[M any](
	locks *core.Client, consumer string, key KeyFunc[M], handler func(context.Context, M) error, opts ...Option,
) func(context.Context, M) error {
	return guards.Must(NewOnce(locks, consumer, key, handler, opts...)).Handle
}

// NewOnce returns the guard of [Once] as a value. It does no I/O and starts no goroutine, so a program for operators can make the
// guard of the consumers, with the same consumer and options, only to call Peek, Resolve and Forget.
func NewOnce[M any](
	locks *core.Client, consumer string, key KeyFunc[M], handler func(context.Context, M) error, opts ...Option,
) (*Guard[M], error) {
	return newOnce(oncePlace, locks, consumer, key, handler, handler, opts)
}

// OnceValue is [Once] for a handler that returns a value of type T, such as the messages that it wants to have published. The value
// is recorded as JSON, and returned again for each further message of the key. So what comes after the handler can be repeated
// until the message is acknowledged, although the handler runs once:
//
//	receipts, err := charge(ctx, m)
//	if err == nil {
//		err = publish(ctx, receipts)
//	}
//
// A further message gets what JSON has kept of the value: exported fields, valid UTF-8, and numbers in an interface as float64. A value
// that JSON cannot encode, or that is longer than [core.WithMaxValue], is not recorded, and a further message of the key is parked:
// [Guard.Resolve] supplies it. FailOpen is refused, because values cannot be replayed without Redis. OnceValue panics if an argument is
// invalid.
func OnceValue[M, T any](
	locks *core.Client, consumer string, key KeyFunc[M], handler func(context.Context, M) (T, error), opts ...Option,
) func(context.Context, M) (T, error) {
	return guards.Must(NewOnceValue(locks, consumer, key, handler, opts...))
}

// NewOnceValue is [OnceValue] that returns an error instead of panicking.
func NewOnceValue[M, T any](
	locks *core.Client, consumer string, key KeyFunc[M], handler func(context.Context, M) (T, error), opts ...Option,
) (func(context.Context, M) (T, error), error) {
	place := oncePlace
	place.Name, place.Refuses = "msglock.OnceValue", map[string]string{"FailOpen": "values cannot be replayed without Redis"}
	g, err := newOnce(place, locks, consumer, key, handler, nil, opts)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, m M) (T, error) {
		var result guards.JSON[T]
		v := g.visit(ctx, m)
		v.handler = func(ctx context.Context, m M) (err error) {
			result.Value, err = handler(ctx, m)
			return err
		}
		v.value, v.load = result.Encode, result.Decode
		err := v.handle()
		return result.Value, err
	}, nil
}

// newOnce makes a guard for a function of the user's, whose name records have. Its handler is nil if each message has its own.
func newOnce[M any](
	place guards.Place, locks *core.Client, consumer string, key KeyFunc[M], fn any, handler func(context.Context, M) error, opts []Option,
) (*Guard[M], error) {
	g, err := newGuard(place, key, fn, opts)
	switch {
	case err != nil:
		return nil, err
	case consumer == "":
		return nil, fmt.Errorf("%w: msglock: the consumer is empty: name the consumer group or subscription", core.ErrInvalidOption)
	}
	if g.once, err = guards.NewOnce(workPlace, locks, g.config); err != nil {
		return nil, err
	}
	g.handler, g.engine, g.label, g.scope = handler, g.once, consumer, []string{consumer}
	return g, seal.CheckOnceOptions(core.WithLabel(consumer))
}

// Peek reads the record of a key, as the key function returns it. It has [core.StateNone] if there is none. It returns the errors of
// [core.Once.Peek].
func (g *Guard[M]) Peek(ctx context.Context, key string) (core.Record, error) {
	_, name := g.nameOf(key)
	return g.once.Peek(ctx, name)
}

// Resolve records that a message has taken effect: an operator has found out how a run of unknown outcome ended. It applies to the
// record that Peek returned. The value is nil, or JSON for [OnceValue]. A completed record that has no value, because it was not
// recorded, gets it too. It returns the errors of [core.Once.Resolve].
func (g *Guard[M]) Resolve(ctx context.Context, seen core.Record, value []byte) error {
	if value != nil && !json.Valid(value) {
		return fmt.Errorf("%w: Resolve: the value is no JSON", core.ErrInvalidOption)
	}
	return g.once.ResolveSeen(ctx, prefix, seen, value)
}

// Forget deletes the record of a key, so that its message is handled when it is delivered again: an operator has found out that it
// has not taken effect. A message that was parked has to be sent again. It applies to the record that Peek returned. It returns the
// errors of [core.Once.Forget].
func (g *Guard[M]) Forget(ctx context.Context, seen core.Record) error {
	return g.once.ForgetSeen(ctx, prefix, seen)
}

// What is logged of a message that is acknowledged without running.
const (
	logDuplicate    = "holdfast: msglock: message acknowledged without running: an earlier message with its key has completed"
	logOtherHandler = "holdfast: msglock: message acknowledged without running: another handler of this consumer has completed " +
		"its key. If the two do different things, give each a consumer name of its own"
)

// replay answers a message whose key has completed. Whether it is a duplicate or another message under the key, only a person knows.
func (v *visit[M]) replay(r core.Record) error {
	other := r.Note != "" && r.Note != v.ask.Note
	if other {
		v.engine.Event(v.ctx, slog.LevelWarn, "other handler", logOtherHandler, v.ask.Work, nil,
			slog.String("handler", v.ask.Note), slog.String("completed_by", r.Note))
	}
	if v.load != nil {
		if err := v.load(r.Value); err != nil {
			return fmt.Errorf("%w, but %w", &core.CompletedError{Record: r}, err)
		}
	}
	if !other {
		v.engine.Event(v.ctx, slog.LevelInfo, "duplicate", logDuplicate, v.ask.Work, nil, slog.Time("began", r.Began))
	}
	return nil
}
