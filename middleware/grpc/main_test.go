package grpclock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/holdfast-go/holdfast/core"
	grpclock "github.com/holdfast-go/holdfast/middleware/grpc"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// patience bounds what must happen, however slow the machine.
const patience = 30 * time.Second

// patient puts more time for Redis in front of the options of a test: on a busy machine it may not reply within the default of 1 s.
func patient(opts []grpclock.Option) []grpclock.Option {
	return append([]grpclock.Option{grpclock.WithAskTimeout(10 * time.Second)}, opts...)
}

func patientIdempotent(locks *core.Client, scope grpclock.KeyFunc, opts ...grpclock.Option) grpc.UnaryServerInterceptor {
	return grpclock.Idempotent(locks, scope, patient(opts)...)
}

func patientOnce(locks *core.Client, key grpclock.KeyFunc, opts ...grpclock.Option) grpc.UnaryServerInterceptor {
	return grpclock.Once(locks, key, patient(opts)...)
}

func patientExclusive(strategy core.Strategy, key grpclock.KeyFunc, opts ...grpclock.Option) grpc.UnaryServerInterceptor {
	return grpclock.Exclusive(strategy, key, patient(opts)...)
}

const (
	service   = "/grpc.testing.TestService/"
	unaryCall = service + "UnaryCall"
)

func TestMain(m *testing.M) { testkit.VerifyWaitingMain(m) }

// newLocks returns a client of the test's own.
func newLocks(t testing.TB) *core.Client {
	t.Helper()
	locks, err := core.New(testkit.Start(t).Client(), core.WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	return locks
}

// testService answers what its functions do.
type testService struct {
	testpb.UnimplementedTestServiceServer
	unary  func(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error)
	stream func(testpb.TestService_FullDuplexCallServer) error
}

func (s *testService) UnaryCall(ctx context.Context, r *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	return s.unary(ctx, r)
}

func (s *testService) FullDuplexCall(stream testpb.TestService_FullDuplexCallServer) error {
	return s.stream(stream)
}

// request has a payload.
func request(payload string) *testpb.SimpleRequest {
	return &testpb.SimpleRequest{Payload: &testpb.Payload{Body: []byte(payload)}}
}

func response(payload string) *testpb.SimpleResponse {
	return &testpb.SimpleResponse{Payload: &testpb.Payload{Body: []byte(payload)}}
}

// serve serves a service over a pipe, and returns a client of it.
func serve(t testing.TB, s testpb.TestServiceServer, opts ...grpc.ServerOption) testpb.TestServiceClient {
	t.Helper()
	server := grpc.NewServer(opts...)
	testpb.RegisterTestServiceServer(server, s)
	return testpb.NewTestServiceClient(dial(t, server))
}

// dial runs a server, and returns a connection to it.
func dial(t testing.TB, server *grpc.Server, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	return dialAt(t, server, bufconn.Listen(1<<20), opts...)
}

// dialAt is dial for a listener of the caller.
func dialAt(t testing.TB, server *grpc.Server, listener *bufconn.Listener, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		server.Stop()
		served.Wait()
	})
	conn, err := grpc.NewClient("passthrough:///bufnet", append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// recovers answers a panic or a runtime.Goexit of what is further in.
func recovers(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err = errBroken
		defer func() { _ = recover() }()
		resp, err = handler(ctx, req)
	}()
	<-ended
	return resp, err
}

var errBroken = status.Error(codes.Internal, "the handler did not return")

// answer is what a client gets.
type answer struct {
	*testpb.SimpleResponse
	header, trailer metadata.MD
	err             error
}

func (a answer) replayed() bool { return len(a.header.Get("idempotency-replayed")) == 1 }

func (a answer) code() codes.Code { return status.Code(a.err) }

// reason returns the reason of a refusal, "" for another answer.
func (a answer) reason() string {
	if info := detail[*errdetails.ErrorInfo](a.err); info != nil && info.GetDomain() == "holdfast" {
		return info.GetReason()
	}
	return ""
}

// detail returns the detail of a type.
func detail[T any](err error) (found T) {
	for _, d := range status.Convert(err).Details() {
		if d, ok := d.(T); ok {
			return d
		}
	}
	return found
}

// call calls with a key, "" for none.
func call(ctx context.Context, c testpb.TestServiceClient, key, payload string, opts ...grpc.CallOption) (a answer) {
	if key != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "idempotency-key", key)
	}
	a.SimpleResponse, a.err = c.UnaryCall(ctx, request(payload),
		append(opts, grpc.Header(&a.header), grpc.Trailer(&a.trailer))...)
	return a
}

func (a answer) want(t testing.TB, code codes.Code, reason string, replayed bool) {
	t.Helper()
	if a.code() != code || a.reason() != reason || a.replayed() != replayed {
		t.Errorf("%v %q, replayed %v, want %v %q, %v: %v", a.code(), a.reason(), a.replayed(), code, reason, replayed, a.err)
	}
}

var errEffect = errors.New("after the effect")

// counter counts runs.
type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) next() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return c.n
}

func (c *counter) want(t testing.TB, n int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n != n {
		t.Errorf("ran %d times, want %d", c.n, n)
	}
}

// counting returns a service that answers with the number of the run.
func counting(c *counter) *testService {
	return &testService{unary: func(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
		return response(fmt.Sprint("run ", c.next())), nil
	}}
}
