package rpc_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/core"
	grpclock "github.com/holdfast-go/holdfast/middleware/grpc"
	"github.com/holdfast-go/holdfast/otellock"
)

// TestOtherInterceptors: otelgrpc and the recovery of go-grpc-middleware work around a guard and inside of one.
func TestOtherInterceptors(t *testing.T) {
	t.Parallel()
	for _, inside := range []bool{false, true} {
		t.Run(fmt.Sprintf("inside %v", inside), func(t *testing.T) {
			t.Parallel()
			spans := tracetest.NewSpanRecorder()
			provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
			hooks, err := otellock.New(otellock.WithTracerProvider(provider))
			if err != nil {
				t.Fatal(err)
			}
			locks := newLocks(t, core.WithHooks(hooks))
			guard := grpclock.Idempotent(locks, grpclock.Unscoped(), core.WithFailurePolicy(core.HoldFailures))
			chain := []grpc.UnaryServerInterceptor{recovery.UnaryServerInterceptor(), guard}
			if inside {
				chain = []grpc.UnaryServerInterceptor{guard, recovery.UnaryServerInterceptor()}
			}
			server := grpc.NewServer(grpc.StatsHandler(otelgrpc.NewServerHandler(otelgrpc.WithTracerProvider(provider))),
				grpc.ChainUnaryInterceptor(chain...))
			runs := 0
			testpb.RegisterTestServiceServer(server, &service{unary: func(ctx context.Context, r *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
				runs++
				if !trace.SpanContextFromContext(ctx).IsValid() {
					t.Error("the handler is in no span")
				}
				if string(r.GetPayload().GetBody()) == "panic" {
					panic("of the handler")
				}
				return response("done"), nil
			}})
			client := testpb.NewTestServiceClient(dial(t, server,
				grpc.WithStatsHandler(otelgrpc.NewClientHandler(otelgrpc.WithTracerProvider(provider)))))
			for i, want := range []struct {
				payload string
				code    codes.Code
			}{
				{"x", codes.OK},
				{"x", codes.OK},
				{"panic", map[bool]codes.Code{false: codes.Internal, true: codes.Internal}[inside]},
				{"panic", codes.FailedPrecondition},
			} {
				ctx := metadata.AppendToOutgoingContext(t.Context(), "idempotency-key", want.payload)
				if _, err := client.UnaryCall(ctx, request(want.payload)); status.Code(err) != want.code &&
					(want.payload != "panic" || status.Code(err) != codes.Unknown) {
					t.Errorf("call %d: %v, want %v", i, err, want.code)
				}
			}
			if runs != 2 {
				t.Errorf("ran %d times", runs)
			}
			server.GracefulStop()
			names := map[string]int{}
			for _, s := range spans.Ended() {
				names[s.Name()]++
			}
			if names["grpc.testing.TestService/UnaryCall"] < 8 || names["holdfast.run"] != 2 {
				t.Errorf("spans %v", names)
			}
		})
	}
}
