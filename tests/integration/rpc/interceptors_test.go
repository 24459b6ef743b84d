package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/auth"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/timeout"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/validator"
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

// checked is a request with a rule for the validator of go-grpc-middleware.
type checked struct{ *testpb.SimpleRequest }

func (c checked) Validate() error {
	if string(c.GetPayload().GetBody()) == "bad" {
		return errors.New("a bad payload")
	}
	return nil
}

// TestAuthAndValidation: around a guard, auth and validator of go-grpc-middleware refuse a call before it has a record.
// Inside of one, a refusal by auth is released, and one by the validator is recorded as a decision. The client has
// their timeout.
func TestAuthAndValidation(t *testing.T) {
	t.Parallel()
	for _, inside := range []bool{false, true} {
		t.Run(fmt.Sprintf("inside %v", inside), func(t *testing.T) {
			t.Parallel()
			guard := grpclock.Idempotent(newLocks(t), grpclock.Unscoped(), core.WithFailurePolicy(core.HoldFailures))
			authenticate := auth.UnaryServerInterceptor(func(ctx context.Context) (context.Context, error) {
				_, err := auth.AuthFromMD(ctx, "bearer")
				return ctx, err
			})
			wrap := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
				return handler(ctx, checked{req.(*testpb.SimpleRequest)})
			}
			unwrap := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
				return handler(ctx, req.(checked).SimpleRequest)
			}
			chain := []grpc.UnaryServerInterceptor{wrap, authenticate, validator.UnaryServerInterceptor(), guard, unwrap}
			if inside {
				chain = []grpc.UnaryServerInterceptor{wrap, guard, authenticate, validator.UnaryServerInterceptor(), unwrap}
			}
			server := grpc.NewServer(grpc.ChainUnaryInterceptor(chain...))
			runs := 0
			testpb.RegisterTestServiceServer(server, &service{unary: func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
				runs++
				if _, bounded := ctx.Deadline(); !bounded {
					t.Error("the timeout of the client did not arrive")
				}
				return response("done"), nil
			}})
			client := testpb.NewTestServiceClient(dial(t, server, grpc.WithUnaryInterceptor(timeout.UnaryClientInterceptor(patience))))
			for i, want := range []struct {
				payload, token string
				code           codes.Code
				replayed       bool
			}{
				{"x", "", codes.Unauthenticated, false},
				{"x", "bearer t", codes.OK, false},
				{"x", "bearer t", codes.OK, true},
				{"bad", "bearer t", codes.InvalidArgument, false},
				{"bad", "bearer t", codes.InvalidArgument, inside},
			} {
				ctx := metadata.AppendToOutgoingContext(t.Context(), "idempotency-key", want.payload, "authorization", want.token)
				var header metadata.MD
				_, err := client.UnaryCall(ctx, request(want.payload), grpc.Header(&header))
				if got := len(header.Get("idempotency-replayed")) == 1; status.Code(err) != want.code || got != want.replayed {
					t.Errorf("call %d: %v, replayed %v, want %v, %v", i, err, got, want.code, want.replayed)
				}
			}
			if runs != 1 {
				t.Errorf("ran %d times", runs)
			}
		})
	}
}
