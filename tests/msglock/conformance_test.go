package msglock_test

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/msglock"
	guardconformance "github.com/holdfast-go/holdfast/tests/conformance/guard"
)

// consumer is the name of [work.handle], so that both kinds of guards have one label.
const consumer = "msglock_test.(*work).handle"

// work is a message of the suite, with what its handler does.
type work struct {
	key, payload string
	fn           guardconformance.Func
	ran          bool
	value        string
}

func (*work) handle(ctx context.Context, w *work) (err error) {
	w.ran = true
	w.value, err = w.fn(ctx, w.payload)
	return err
}

func keyOf(_ context.Context, w *work) (string, error) { return w.key, nil }

// TestConformance: messages pass the suite of all places, alone and in batches.
func TestConformance(t *testing.T) {
	t.Parallel()
	for name, once := range map[string]func(*core.Client, ...guard.Option) (func(context.Context, *work) error, error){
		"Alone": func(locks *core.Client, opts ...guard.Option) (func(context.Context, *work) error, error) {
			g, err := msglock.NewOnce(locks, consumer, keyOf, new(work).handle, opts...)
			if err != nil {
				return nil, err
			}
			return g.Handle, nil
		},
		"Batch": func(locks *core.Client, opts ...guard.Option) (func(context.Context, *work) error, error) {
			g, err := msglock.NewOnce(locks, consumer, keyOf, new(work).handle, opts...)
			if err != nil {
				return nil, err
			}
			return func(ctx context.Context, w *work) error { return g.HandleBatch(ctx, []*work{w})[0] }, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lacks := map[string]string{}
			for _, name := range []string{"OtherPayloadIsRefused", "ProofOfOtherPayloadIsRefused"} {
				lacks[name] = "a message of any type has no payload to compare"
			}
			lacks["OmittedValueIsNotReplayed"] = "a handler returns no value; for OnceValue see TestOnceValue"
			if name == "Batch" {
				lacks["GoexitFreesTheKey"] = "the handlers of a batch have goroutines of their own, and the batch goes on"
			}
			guardconformance.Run(t, guardconformance.Place{
				Work: core.Work{Place: "message", Label: consumer}, Lacks: lacks,
				New: func(
					t testing.TB, locks *core.Client, kind guardconformance.Kind, fn guardconformance.Func, opts ...guard.Option,
				) guardconformance.Deliver {
					opts = append([]guard.Option{guard.WithAskTimeout(guard.AskTimeout)}, opts...) // a busy machine is no outage
					var handle func(context.Context, *work) error
					var err error
					if kind == guardconformance.Once {
						handle, err = once(locks, opts...)
					} else {
						handle, err = msglock.NewExclusive(locks.Mutex, keyOf, new(work).handle, opts...)
					}
					if err != nil {
						t.Fatal(err)
					}
					return deliverer(handle, fn)
				},
			})
		})
	}
}

// deliverer delivers messages to a guard. The sender is a broker: it waits for the consumer until the context ends.
func deliverer(handle func(context.Context, *work) error, fn guardconformance.Func) guardconformance.Deliver {
	return func(ctx context.Context, key, payload string) guardconformance.Result {
		result, done := guardconformance.Result{Code: guardconformance.Broken}, make(chan struct{})
		go func() {
			defer close(done)
			defer func() { _ = recover() }()
			w := &work{key: key, payload: payload, fn: fn}
			err := handle(ctx, w)
			result = guardconformance.Result{Code: codeOf(w.ran, err), Value: w.value}
		}()
		select {
		case <-done:
			return result
		case <-ctx.Done():
			return guardconformance.Result{Code: guardconformance.Left}
		}
	}
}

// codeOf tells what becomes of a message by what a consumer is told.
func codeOf(ran bool, err error) guardconformance.Code {
	action, delay := msglock.Disposition(err)
	switch {
	case errors.Is(err, core.ErrOutcomeUnknown) && action == msglock.Park:
		return guardconformance.Unknown
	case ran && action == msglock.Ack:
		return guardconformance.Ran
	case ran:
		return guardconformance.Failed
	case action == msglock.Ack:
		return guardconformance.Completed
	case errors.Is(err, msglock.ErrNoKey) && action == msglock.Park:
		return guardconformance.NoKey
	case errors.Is(err, core.ErrWrongType) && action == msglock.Nack:
		return guardconformance.Erroneous
	case errors.Is(err, core.ErrUndecided) && delay > 0:
		return guardconformance.Undecided
	case errors.Is(err, core.ErrUnavailable) && delay > 0:
		return guardconformance.Unavailable
	case delay > 0:
		return guardconformance.Busy
	}
	return guardconformance.Erroneous
}
