package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"buf.build/go/protovalidate"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/auth"
	protovalidator "github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/protovalidate"
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
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

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
			guard := grpclock.Idempotent(locks, grpclock.Unscoped(), grpclock.WithAskTimeout(patience), core.WithFailurePolicy(core.HoldFailures))
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

// ruled is the type of a request with the same rule for protovalidate.
var ruled = func() protoreflect.MessageDescriptor {
	f := new(descriptorpb.FileDescriptorProto)
	err := prototext.Unmarshal([]byte(`name: "ruled.proto" package: "ruled" syntax: "proto3" dependency: "buf/validate/validate.proto"
		message_type { name: "Request" field { name: "body" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL
			options { [buf.validate.field] { string { not_in: "bad" } } } } }`), f)
	if err != nil {
		panic(err)
	}
	d, err := protodesc.NewFile(f, protoregistry.GlobalFiles)
	if err != nil {
		panic(err)
	}
	return d.Messages().Get(0)
}()

// validation is an interceptor that validates requests, and how to give them its rule.
type validation struct {
	interceptor grpc.UnaryServerInterceptor
	wrap        func(*testpb.SimpleRequest) any
	unwrap      func(any) *testpb.SimpleRequest
	detailed    bool // its errors have details
}

func validations(t *testing.T) map[string]validation {
	t.Helper()
	proto, err := protovalidate.New()
	if err != nil {
		t.Fatal(err)
	}
	body := ruled.Fields().ByName("body")
	return map[string]validation{
		"validator": {
			validator.UnaryServerInterceptor(),
			func(r *testpb.SimpleRequest) any { return checked{r} },
			func(r any) *testpb.SimpleRequest { return r.(checked).SimpleRequest }, false,
		},
		"protovalidate": {
			protovalidator.UnaryServerInterceptor(proto),
			func(r *testpb.SimpleRequest) any {
				m := dynamicpb.NewMessage(ruled)
				m.Set(body, protoreflect.ValueOfString(string(r.GetPayload().GetBody())))
				return m
			},
			func(r any) *testpb.SimpleRequest { return request(r.(*dynamicpb.Message).Get(body).String()) }, true,
		},
	}
}

// TestAuthAndValidation: around a guard, auth, validator and protovalidate of go-grpc-middleware refuse a call before
// it has a record. Inside of one, a refusal by auth is released, and one by a validator is recorded as a decision. The
// client has their timeout.
func TestAuthAndValidation(t *testing.T) {
	t.Parallel()
	for name, v := range validations(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testAuthAndValidation(t, v, false)
		})
		t.Run(name+" inside", func(t *testing.T) {
			t.Parallel()
			testAuthAndValidation(t, v, true)
		})
	}
}

func testAuthAndValidation(t *testing.T, v validation, inside bool) {
	guard := grpclock.Idempotent(newLocks(t), grpclock.Unscoped(), grpclock.WithAskTimeout(patience))
	authenticate := auth.UnaryServerInterceptor(func(ctx context.Context) (context.Context, error) {
		_, err := auth.AuthFromMD(ctx, "bearer")
		return ctx, err
	})
	wrap := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		return handler(ctx, v.wrap(req.(*testpb.SimpleRequest)))
	}
	unwrap := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		return handler(ctx, v.unwrap(req))
	}
	chain := []grpc.UnaryServerInterceptor{wrap, authenticate, v.interceptor, guard, unwrap}
	if inside {
		chain = []grpc.UnaryServerInterceptor{wrap, guard, authenticate, v.interceptor, unwrap}
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
		if details := len(status.Convert(err).Details()); want.payload == "bad" && (details > 0) != v.detailed {
			t.Errorf("call %d: %d details", i, details)
		}
	}
	if runs != 1 {
		t.Errorf("ran %d times", runs)
	}
}

// TestServerTimeout: an interceptor, like one that go-zero has, answers DEADLINE_EXCEEDED while the handler continues.
// Around a guard, the retry waits for the handler and gets its response. Inside, the guard takes that for the end of
// the call: its outcome is unknown.
func TestServerTimeout(t *testing.T) {
	t.Parallel()
	for _, inside := range []bool{false, true} {
		t.Run(fmt.Sprintf("inside %v", inside), func(t *testing.T) {
			t.Parallel()
			guard := grpclock.Idempotent(newLocks(t), grpclock.Unscoped(), grpclock.WithAskTimeout(patience), core.WithFailurePolicy(core.HoldFailures), core.WithWait(patience))
			var limit atomic.Int64
			bounded := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
				ctx, cancel := context.WithTimeout(ctx, time.Duration(limit.Load()))
				defer cancel()
				type ended struct {
					resp any
					err  error
				}
				done := make(chan ended, 1)
				go func() {
					resp, err := handler(ctx, req)
					done <- ended{resp, err}
				}()
				select {
				case e := <-done:
					return e.resp, e.err
				case <-ctx.Done():
					return nil, status.FromContextError(ctx.Err()).Err()
				}
			}
			chain := []grpc.UnaryServerInterceptor{bounded, guard}
			if inside {
				chain = []grpc.UnaryServerInterceptor{guard, bounded}
			}
			server := grpc.NewServer(grpc.ChainUnaryInterceptor(chain...))
			var mu sync.Mutex
			runs := map[string]int{} // by key
			ran := func(key string) int {
				mu.Lock()
				defer mu.Unlock()
				return runs[key]
			}
			leave := make(chan struct{})
			testpb.RegisterTestServiceServer(server, &service{unary: func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
				mu.Lock()
				runs[metadata.ValueFromIncomingContext(ctx, "idempotency-key")[0]]++
				mu.Unlock()
				<-leave
				return response("done"), nil
			}})
			client := testpb.NewTestServiceClient(dial(t, server))
			call := func(key string) (replayed bool, err error) {
				ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
				defer cancel()
				var header metadata.MD
				_, err = client.UnaryCall(metadata.AppendToOutgoingContext(ctx, "idempotency-key", key), request("x"), grpc.Header(&header))
				return len(header.Get("idempotency-replayed")) == 1, err
			}
			key := ""
			for wait := 20 * time.Millisecond; ran(key) == 0; wait *= 2 { // until the handler begins in that time
				limit.Store(int64(wait))
				key = wait.String()
				if _, err := call(key); status.Code(err) != codes.DeadlineExceeded {
					t.Fatal(err)
				}
			}
			limit.Store(int64(patience))
			if inside {
				if _, err := call(key); status.Code(err) != codes.FailedPrecondition {
					t.Error(err)
				}
				close(leave)
			} else {
				time.AfterFunc(20*time.Millisecond, func() { close(leave) })
				if replayed, err := call(key); err != nil || !replayed {
					t.Errorf("replayed %v, %v", replayed, err)
				}
			}
			if n := ran(key); n != 1 {
				t.Errorf("ran %d times", n)
			}
		})
	}
}
