package rpc_test

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	testpb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// patience bounds what must happen, however slow the machine.
const patience = 30 * time.Second

const unaryCall = "/grpc.testing.TestService/UnaryCall"

func TestMain(m *testing.M) { testkit.VerifyWaitingMain(m) }

// newLocks returns a client of the test's own.
func newLocks(t testing.TB, opts ...core.Option) *core.Client {
	t.Helper()
	locks, err := core.New(testkit.Start(t).Client(), append([]core.Option{core.WithLogger(nil)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	return locks
}

// listen runs a server on a socket until the test ends, and returns its address.
func listen(t testing.TB, serve func(net.Listener) error, stop func()) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() { _ = serve(listener) })
	t.Cleanup(func() {
		stop()
		served.Wait()
	})
	return listener.Addr().String()
}

// dial runs a server, and returns a connection to it.
func dial(t testing.TB, server *grpc.Server, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	return connectTo(t, listen(t, server.Serve, server.Stop), opts...)
}

func connectTo(t testing.TB, addr string, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(addr, append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// listenHTTP serves a handler over HTTP/1.1 and h2c.
func listenHTTP(t testing.TB, h http.Handler) string {
	t.Helper()
	srv := &http.Server{Handler: h, ReadHeaderTimeout: patience, ErrorLog: log.New(io.Discard, "", 0), Protocols: new(http.Protocols)}
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetUnencryptedHTTP2(true)
	return listen(t, srv.Serve, func() { _ = srv.Close() })
}

// h2c is a client of HTTP/2 without TLS.
func h2c(t testing.TB) *http.Client {
	t.Helper()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

type service struct {
	testpb.UnimplementedTestServiceServer
	unary func(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error)
}

func (s *service) UnaryCall(ctx context.Context, r *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	return s.unary(ctx, r)
}

func request(payload string) *testpb.SimpleRequest {
	return &testpb.SimpleRequest{Payload: &testpb.Payload{Body: []byte(payload)}}
}

func response(payload string) *testpb.SimpleResponse {
	return &testpb.SimpleResponse{Payload: &testpb.Payload{Body: []byte(payload)}}
}
