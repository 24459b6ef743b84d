package connectlock_test

import (
	"context"
	"testing"

	"connectrpc.com/connect"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/guard"
	connectlock "github.com/holdfast-go/holdfast/middleware/connect"
	guardconformance "github.com/holdfast-go/holdfast/tests/conformance/guard"
)

// TestConformance: calls pass the suite of all places, Idempotent as its Once.
func TestConformance(t *testing.T) {
	for _, p := range []protocol{protocols[0], protocols[3]} {
		t.Run(p.name, func(t *testing.T) { // one after the other, for small machines
			guardconformance.Run(t, guardconformance.Place{
				Work: core.Work{Place: "rpc", Label: unaryCall},
				New: func(
					t testing.TB, locks *core.Client, kind guardconformance.Kind, fn guardconformance.Func, opts ...guard.Option,
				) guardconformance.Deliver {
					opts = append([]guard.Option{guard.WithAskTimeout(guard.AskTimeout)}, opts...) // a busy machine may keep Redis from answering in 1 s
					var interceptor connect.Interceptor
					if kind == guardconformance.Exclusive {
						interceptor = connectlock.Exclusive(locks.Mutex, connectlock.ByMetadata("Idempotency-Key"), opts...)
					} else {
						interceptor = connectlock.Idempotent(locks, connectlock.Unscoped(), opts...)
					}
					c := serve(t, p, func(ctx context.Context, r *request) (*response, error) {
						value, err := fn(ctx, r.Msg.GetValue())
						if err != nil {
							return nil, err
						}
						return responseOf(value), nil
					}, connectlock.For(unaryCall, interceptor))
					return func(ctx context.Context, key, payload string) guardconformance.Result {
						return result(ctx, call(ctx, c, key, payload))
					}
				},
			})
		})
	}
}

// result returns what the suite calls an answer. net/http ends the connection of a handler that panics or exits.
func result(ctx context.Context, a answer) (r guardconformance.Result) {
	r.Value = a.payload
	r.Code = map[string]guardconformance.Code{
		"LOCK_CONFLICT": guardconformance.Busy, "REQUEST_IN_PROGRESS": guardconformance.Busy,
		"ALREADY_COMPLETED": guardconformance.Completed, "OUTCOME_UNKNOWN": guardconformance.Unknown,
		"IDEMPOTENCY_KEY_REUSED": guardconformance.Mismatch, "LOCK_UNAVAILABLE": guardconformance.Unavailable, "UNDECIDED": guardconformance.Undecided,
		"KEY_REQUIRED": guardconformance.NoKey, "GUARD_FAILED": guardconformance.Erroneous, "LEASE_LOST": guardconformance.Failed,
	}[a.reason()]
	switch {
	case r.Code != "":
	case ctx.Err() != nil:
		r.Code = guardconformance.Left
	case a.replayed():
		r.Code = guardconformance.Replayed
	case a.code() == connect.CodeUnknown:
		r.Code = guardconformance.Failed
	case a.err != nil:
		r.Code = guardconformance.Broken
	default:
		r.Code = guardconformance.Ran
	}
	return r
}
