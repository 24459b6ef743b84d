package connectlock_test

import (
	"context"
	"fmt"
	"testing"

	"connectrpc.com/connect"

	"github.com/holdfast-go/holdfast/core"
	connectlock "github.com/holdfast-go/holdfast/middleware/connect"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// ofProcedure is a request of a handler.
type ofProcedure struct{ connect.AnyRequest }

func (ofProcedure) Spec() connect.Spec { return connect.Spec{Procedure: unaryCall} }

// BenchmarkUnary measures a call whose handler does nothing, with a Redis beside it and without the network of Connect.
// Bare is an interceptor that does nothing, and RoundTrip one that sends a PING to that Redis. Of Replayed and Refused,
// the key has completed before.
func BenchmarkUnary(b *testing.B) {
	rdb := testkit.Start(b).Client()
	locks, err := core.New(rdb, core.WithLogger(nil))
	if err != nil {
		b.Fatal(err)
	}
	defer locks.Close()
	bare := connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) { return next(ctx, r) }
	})
	roundTrip := connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
			if err := rdb.Ping(ctx).Err(); err != nil {
				return nil, err
			}
			return next(ctx, r)
		}
	})
	key := connectlock.ByMetadata("Idempotency-Key")
	idempotent, once := patientIdempotent(locks, connectlock.Unscoped()), patientOnce(locks, key)
	for _, test := range []struct {
		name  string
		guard connect.Interceptor
		key   string // of all calls; each has one of its own if it is empty
		code  connect.Code
	}{
		{"Bare", bare, "", 0},
		{"RoundTrip", roundTrip, "", 0},
		{"OtherMethod", connectlock.For(get, idempotent), "", 0},
		{"Exclusive", patientExclusive(locks.Mutex, key), "", 0},
		{"New", idempotent, "", 0},
		{"Replayed", idempotent, "replayed", 0},
		{"Refused", once, "refused", connect.CodeAlreadyExists},
	} {
		b.Run(test.name, func(b *testing.B) {
			resp := responseOf("answer")
			handler := test.guard.WrapUnary(func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) { return resp, nil })
			call := func(id string) error {
				req := requestOf("payload")
				req.Header().Set("Idempotency-Key", id)
				_, err := handler(b.Context(), ofProcedure{req})
				return err
			}
			if test.key != "" {
				_ = call(test.key)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				id := test.key
				if id == "" {
					id = fmt.Sprint(b.N, "-", i)
				}
				if err := call(id); err != nil && connect.CodeOf(err) != test.code || err == nil && test.code != 0 {
					b.Fatal(err)
				}
			}
		})
	}
}
