package watermilllock_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/msglock"
	watermilllock "github.com/holdfast-go/holdfast/msglock/watermill"
	guardconformance "github.com/holdfast-go/holdfast/tests/conformance/guard"
)

// TestConformance: handlers of a router pass the suite of all places. What they return is one message, which is replayed.
func TestConformance(t *testing.T) {
	t.Parallel()
	const noOpen = "it replays messages, which it cannot without Redis"
	const notCompared = "payloads are not compared"
	lacks := map[string]string{"OtherPayloadIsRefused": notCompared, "ProofOfOtherPayloadIsRefused": notCompared}
	for _, name := range []string{
		"OutageBeforeRunsIfFailOpen", "OutageBeforeAndHoldWithoutRecord", "OutageDuringKeepsTheKeyIfFailOpen",
		"OutageAfterDoesNotRepeatIfFailOpen", "OutageAfterBusyIsNotOpen",
	} {
		lacks[name] = noOpen
	}
	guardconformance.Run(t, guardconformance.Place{
		Work: core.Work{Place: "message", Label: "billing"}, Lacks: lacks,
		New: func(
			t testing.TB, locks *core.Client, kind guardconformance.Kind, fn guardconformance.Func, opts ...guard.Option,
		) guardconformance.Deliver {
			if kind == guardconformance.Exclusive {
				t.Skip("a router has no Exclusive")
			}
			opts = append([]guard.Option{guard.WithAskTimeout(guard.AskTimeout)}, opts...) // a busy machine is no outage
			g, err := watermilllock.NewOnce(locks, "billing", watermilllock.ByMetadata("key"), opts...)
			if err != nil {
				t.Fatal(err)
			}
			return deliverer(g, fn)
		},
	})
}

type ranKey struct{}

func deliverer(g *watermilllock.Guard, fn guardconformance.Func) guardconformance.Deliver {
	handler := g.Wrap(func(m *message.Message) ([]*message.Message, error) {
		*m.Context().Value(ranKey{}).(*bool) = true
		value, err := fn(m.Context(), string(m.Payload))
		if err != nil {
			return nil, err
		}
		return message.Messages{message.NewMessage("1", message.Payload(value))}, nil
	})
	return func(ctx context.Context, key, payload string) guardconformance.Result {
		result, done := guardconformance.Result{Code: guardconformance.Broken}, make(chan struct{})
		go func() {
			defer close(done)
			defer func() { _ = recover() }()
			m, ran := message.NewMessage("", message.Payload(payload)), false
			m.Metadata.Set("key", key)
			m.SetContext(context.WithValue(ctx, ranKey{}, &ran))
			produced, err := handler(m)
			result.Code = codeOf(ran, err)
			if len(produced) > 0 {
				result.Value = string(produced[0].Payload)
			}
		}()
		select {
		case <-done:
			return result
		case <-ctx.Done():
			return guardconformance.Result{Code: guardconformance.Left}
		}
	}
}

func codeOf(ran bool, err error) guardconformance.Code {
	_, delay := msglock.Disposition(err)
	switch {
	case errors.Is(err, core.ErrOutcomeUnknown) && watermilllock.Parked(err):
		return guardconformance.Unknown
	case errors.Is(err, core.ErrCompleted) && watermilllock.Parked(err): // without the messages
		return guardconformance.Completed
	case ran && err == nil:
		return guardconformance.Ran
	case ran:
		return guardconformance.Failed
	case err == nil:
		return guardconformance.Replayed
	case errors.Is(err, msglock.ErrNoKey) && watermilllock.Parked(err):
		return guardconformance.NoKey
	case errors.Is(err, core.ErrWrongType):
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
