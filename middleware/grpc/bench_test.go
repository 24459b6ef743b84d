package grpclock_test

import (
	"context"
	"fmt"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/core"
	grpclock "github.com/holdfast-go/holdfast/middleware/grpc"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// BenchmarkUnary measures a call whose handler does nothing, with a Redis beside it and without the network of gRPC.
// Bare is an interceptor that does nothing, and RoundTrip one that sends a PING to that Redis. Of Replayed and Refused,
// the key has completed before.
func BenchmarkUnary(b *testing.B) {
	rdb := testkit.Start(b).Client()
	locks, err := core.New(rdb, core.WithLogger(nil))
	if err != nil {
		b.Fatal(err)
	}
	defer locks.Close()
	bare := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		return handler(ctx, req)
	}
	roundTrip := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if err := rdb.Ping(ctx).Err(); err != nil {
			return nil, err
		}
		return handler(ctx, req)
	}
	key := grpclock.ByMetadata("idempotency-key")
	idempotent, once := patientIdempotent(locks, grpclock.Unscoped()), patientOnce(locks, key)
	for _, test := range []struct {
		name  string
		guard grpc.UnaryServerInterceptor
		key   string // of all calls; each has one of its own if it is empty
		code  codes.Code
	}{
		{"Bare", bare, "", codes.OK},
		{"RoundTrip", roundTrip, "", codes.OK},
		{"OtherMethod", grpclock.For(service+"EmptyCall", idempotent), "", codes.OK},
		{"Exclusive", patientExclusive(locks.Mutex, key), "", codes.OK},
		{"New", idempotent, "", codes.OK},
		{"Replayed", idempotent, "replayed", codes.OK},
		{"Refused", once, "refused", codes.AlreadyExists},
	} {
		b.Run(test.name, func(b *testing.B) {
			info := &grpc.UnaryServerInfo{FullMethod: unaryCall}
			req, resp := request("payload"), response("answer")
			handler := func(context.Context, any) (any, error) { return resp, nil }
			call := func(id string) error {
				ctx := grpc.NewContextWithServerTransportStream(
					metadata.NewIncomingContext(b.Context(), metadata.Pairs("idempotency-key", id)), new(fakeStream))
				_, err := test.guard(ctx, req, info, handler)
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
				if err := call(id); status.Code(err) != test.code {
					b.Fatal(err)
				}
			}
		})
	}
}
