package rpc_test

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/interop"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"

	grpclock "github.com/holdfast-go/holdfast/middleware/grpc"
)

// TestInterop: grpc-go's own test client finds no difference in its test service behind guards of each kind.
func TestInterop(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	keyed := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		return invoke(metadata.AppendToOutgoingContext(ctx, "idempotency-key", uuid.NewString()), method, req, reply, cc, opts...)
	}
	streams := func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		return open(metadata.AppendToOutgoingContext(ctx, "idempotency-key", uuid.NewString()), d, cc, method, opts...)
	}
	key := grpclock.ByMetadata("idempotency-key")
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(
			grpclock.Exclusive(locks.Mutex, key), grpclock.Once(locks, key),
			grpclock.Idempotent(locks, grpclock.Unscoped()),
		),
		grpc.ChainStreamInterceptor(grpclock.ExclusiveStream(locks.Mutex, key)),
	)
	testpb.RegisterTestServiceServer(server, interop.NewTestServer())
	conn := dial(t, server, grpc.WithUnaryInterceptor(keyed), grpc.WithStreamInterceptor(streams))
	client, ctx := testpb.NewTestServiceClient(conn), t.Context()
	for name, run := range map[string]func(){
		"empty unary":                 func() { interop.DoEmptyUnaryCall(ctx, client) },
		"large unary":                 func() { interop.DoLargeUnaryCall(ctx, client) },
		"client streaming":            func() { interop.DoClientStreaming(ctx, client) },
		"server streaming":            func() { interop.DoServerStreaming(ctx, client) },
		"ping pong":                   func() { interop.DoPingPong(ctx, client) },
		"empty stream":                func() { interop.DoEmptyStream(ctx, client) },
		"timeout on sleeping server":  func() { interop.DoTimeoutOnSleepingServer(ctx, client) },
		"cancel after begin":          func() { interop.DoCancelAfterBegin(ctx, client) },
		"cancel after first response": func() { interop.DoCancelAfterFirstResponse(ctx, client) },
		"custom metadata":             func() { interop.DoCustomMetadata(ctx, client) },
		"status code and message":     func() { interop.DoStatusCodeAndMessage(ctx, client) },
		"special status message":      func() { interop.DoSpecialStatusMessage(ctx, client) },
		"unimplemented service":       func() { interop.DoUnimplementedService(ctx, testpb.NewUnimplementedServiceClient(conn)) },
		"unimplemented method":        func() { interop.DoUnimplementedMethod(ctx, conn) },
	} {
		t.Run(name, func(*testing.T) { run() }) // which ends the process if it fails
	}
}
