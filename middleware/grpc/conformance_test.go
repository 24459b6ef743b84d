package grpclock_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/guard"
	grpclock "github.com/holdfast-go/holdfast/middleware/grpc"
	guardconformance "github.com/holdfast-go/holdfast/tests/conformance/guard"
)

// TestConformance: calls pass the suite of all places, Idempotent as its Once.
func TestConformance(t *testing.T) {
	t.Parallel()
	guardconformance.Run(t, guardconformance.Place{
		Work: core.Work{Place: "rpc", Label: unaryCall},
		New: func(
			t testing.TB, locks *core.Client, kind guardconformance.Kind, fn guardconformance.Func, opts ...guard.Option,
		) guardconformance.Deliver {
			opts = append([]guard.Option{guard.WithAskTimeout(guard.AskTimeout)}, opts...) // a busy machine may keep Redis from answering in 1 s
			var interceptor grpc.UnaryServerInterceptor
			if kind == guardconformance.Exclusive {
				interceptor = grpclock.Exclusive(locks.Mutex, grpclock.ByMetadata("idempotency-key"), opts...)
			} else {
				interceptor = grpclock.Idempotent(locks, grpclock.Unscoped(), opts...)
			}
			client := serve(t, &testService{
				unary: func(ctx context.Context, r *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
					value, err := fn(ctx, string(r.GetPayload().GetBody()))
					if err != nil {
						return nil, err
					}
					return response(value), nil
				},
			}, grpc.ChainUnaryInterceptor(recovers, grpclock.For(service+"UnaryCall", interceptor)))
			return func(ctx context.Context, key, payload string) guardconformance.Result {
				return result(ctx, call(ctx, client, key, payload))
			}
		},
	})
}

// result returns what the suite calls an answer.
func result(ctx context.Context, a answer) (r guardconformance.Result) {
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
	case a.code() == codes.Internal && strings.Contains(a.err.Error(), "did not return"):
		r.Code = guardconformance.Broken
	case a.replayed():
		r.Code, r.Value = guardconformance.Replayed, string(a.GetPayload().GetBody())
	case a.err != nil:
		r.Code = guardconformance.Failed
	default:
		r.Code, r.Value = guardconformance.Ran, string(a.GetPayload().GetBody())
	}
	return r
}
