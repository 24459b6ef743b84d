package grpclock_test

import (
	"context"
	"fmt"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/holdfast-go/holdfast/core"
	grpclock "github.com/holdfast-go/holdfast/middleware/grpc"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// BenchmarkUnary measures a guarded call on a Redis beside it, without the network of gRPC; Bare is an interceptor that does nothing.
func BenchmarkUnary(b *testing.B) {
	locks, err := core.New(testkit.Start(b).Client(), core.WithLogger(nil))
	if err != nil {
		b.Fatal(err)
	}
	defer locks.Close()
	bare := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		return handler(ctx, req)
	}
	key := grpclock.ByMetadata("idempotency-key")
	for _, test := range []struct {
		name  string
		guard grpc.UnaryServerInterceptor
		same  bool // the same key for all calls
	}{
		{"Bare", bare, false},
		{"ForOtherMethods", grpclock.For(service+"EmptyCall", grpclock.Idempotent(locks, key)), false},
		{"Exclusive", grpclock.Exclusive(locks.Mutex, key), false},
		{"Once", grpclock.Once(locks, key), false},
		{"Idempotent", grpclock.Idempotent(locks, grpclock.Unscoped()), false},
		{"Replay", grpclock.Idempotent(locks, grpclock.Constant("replay")), true},
	} {
		b.Run(test.name, func(b *testing.B) {
			b.ReportAllocs()
			info := &grpc.UnaryServerInfo{FullMethod: unaryCall}
			req, resp := request("payload"), response("answer")
			handler := func(context.Context, any) (any, error) { return resp, nil }
			for i := 0; b.Loop(); i++ {
				id := "same"
				if !test.same {
					id = fmt.Sprint(b.N, "-", i)
				}
				ctx := grpc.NewContextWithServerTransportStream(
					metadata.NewIncomingContext(b.Context(), metadata.Pairs("idempotency-key", id)), new(fakeStream))
				if _, err := test.guard(ctx, req, info, handler); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
