package connectlock_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast/core"
	connectlock "github.com/holdfast-go/holdfast/middleware/connect"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// patience bounds what must happen, however slow the machine.
const patience = 30 * time.Second

// patient puts more time for Redis in front of the options of a test: on a busy machine it may not reply within the default of 1 s.
func patient(opts []connectlock.Option) []connectlock.Option {
	return append([]connectlock.Option{connectlock.WithAskTimeout(10 * time.Second)}, opts...)
}

func patientIdempotent(locks *core.Client, scope connectlock.KeyFunc, opts ...connectlock.Option) connect.Interceptor {
	return connectlock.Idempotent(locks, scope, patient(opts)...)
}

func patientOnce(locks *core.Client, key connectlock.KeyFunc, opts ...connectlock.Option) connect.Interceptor {
	return connectlock.Once(locks, key, patient(opts)...)
}

func patientExclusive(strategy core.Strategy, key connectlock.KeyFunc, opts ...connectlock.Option) connect.Interceptor {
	return connectlock.Exclusive(strategy, key, patient(opts)...)
}

const (
	service   = "/lines.Lines/"
	unaryCall = service + "Run"
	duplex    = service + "Watch"
	get       = service + "Get"
)

func init() {
	f := new(descriptorpb.FileDescriptorProto)
	err := prototext.Unmarshal([]byte(`name: "lines.proto" package: "lines" dependency: "google/protobuf/wrappers.proto" service {
		name: "Lines"
		method { name: "Run" input_type: ".google.protobuf.StringValue" output_type: ".google.protobuf.StringValue" }
		method { name: "Get" input_type: ".google.protobuf.StringValue" output_type: ".google.protobuf.StringValue" }
		method { name: "Watch" input_type: ".google.protobuf.StringValue" output_type: ".google.protobuf.StringValue" server_streaming: true }
	}`), f)
	if err == nil {
		d, failure := protodesc.NewFile(f, protoregistry.GlobalFiles)
		if err = failure; err == nil {
			err = protoregistry.GlobalFiles.RegisterFile(d)
		}
	}
	if err != nil {
		panic(err)
	}
}

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

type (
	request  = connect.Request[wrapperspb.StringValue]
	response = connect.Response[wrapperspb.StringValue]
	unary    = func(context.Context, *request) (*response, error)
)

func requestOf(payload string) *request {
	return connect.NewRequest(wrapperspb.String(payload))
}

func responseOf(payload string) *response {
	return connect.NewResponse(wrapperspb.String(payload))
}

// protocol is how a client speaks with a server.
type protocol struct {
	name  string
	http1 bool
	opts  []connect.ClientOption
}

var protocols = []protocol{
	{"Connect over HTTP/1.1", true, nil},
	{"Connect over h2c", false, nil},
	{"Connect with JSON", true, []connect.ClientOption{connect.WithProtoJSON()}},
	{"gRPC", false, []connect.ClientOption{connect.WithGRPC()}},
	{"gRPC-Web", true, []connect.ClientOption{connect.WithGRPCWeb()}},
}

// listen serves a handler over HTTP/1.1 and h2c, and returns its address.
func listen(t testing.TB, h http.Handler) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{
		Handler: h, ReadHeaderTimeout: patience, ErrorLog: log.New(io.Discard, "", 0), // handlers panic on purpose
		Protocols: new(http.Protocols),
	}
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetUnencryptedHTTP2(true)
	var served sync.WaitGroup
	served.Go(func() { _ = srv.Serve(listener) })
	t.Cleanup(func() {
		_ = srv.Close()
		served.Wait()
	})
	return "http://" + listener.Addr().String()
}

func httpClient(t testing.TB, http1 bool) *http.Client {
	transport := &http.Transport{Protocols: new(http.Protocols), TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS13}}
	transport.Protocols.SetHTTP1(http1)
	transport.Protocols.SetUnencryptedHTTP2(!http1)
	transport.DialContext = new(net.Dialer).DialContext
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

type client = connect.Client[wrapperspb.StringValue, wrapperspb.StringValue]

// serve serves a unary method, and returns a client of it.
func serve(t testing.TB, p protocol, fn unary, interceptors ...connect.Interceptor) *client {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(unaryCall, connect.NewUnaryHandler(unaryCall, fn, connect.WithInterceptors(interceptors...)))
	return connect.NewClient[wrapperspb.StringValue, wrapperspb.StringValue](
		httpClient(t, p.http1), listen(t, mux)+unaryCall, p.opts...)
}

// answer is what a client gets.
type answer struct {
	payload         string
	header, trailer http.Header
	err             error
}

func (a answer) replayed() bool { return a.header.Get("Idempotency-Replayed") == "true" }

func (a answer) code() connect.Code {
	if a.err == nil {
		return 0
	}
	return connect.CodeOf(a.err)
}

// reason returns the reason of a refusal, "" for another answer.
func (a answer) reason() string {
	if info := detail[*errdetails.ErrorInfo](a.err); info != nil && info.GetDomain() == "holdfast" {
		return info.GetReason()
	}
	return ""
}

// detail returns the detail of a type.
func detail[T any](err error) (found T) {
	var coded *connect.Error
	if !errors.As(err, &coded) {
		return found
	}
	for _, d := range coded.Details() {
		if m, err := d.Value(); err == nil {
			if m, ok := m.(T); ok {
				return m
			}
		}
	}
	return found
}

// call calls with a key, "" for none.
func call(ctx context.Context, c *client, key, payload string) (a answer) {
	req := requestOf(payload)
	if key != "" {
		req.Header().Set("Idempotency-Key", key)
	}
	resp, err := c.CallUnary(ctx, req)
	var coded *connect.Error
	switch {
	case err == nil:
		a = answer{resp.Msg.GetValue(), resp.Header(), resp.Trailer(), nil}
	case errors.As(err, &coded):
		a = answer{header: coded.Meta(), trailer: coded.Meta(), err: err}
	default:
		a.err = err
	}
	return a
}

func (a answer) want(t testing.TB, code connect.Code, reason string, replayed bool) {
	t.Helper()
	if a.code() != code || a.reason() != reason || a.replayed() != replayed {
		t.Errorf("%v %q, replayed %v, want %v %q, %v: %v", a.code(), a.reason(), a.replayed(), code, reason, replayed, a.err)
	}
}

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

// counting returns a method that answers with the number of the run.
func counting(c *counter) unary {
	return func(context.Context, *request) (*response, error) {
		return responseOf(fmt.Sprint("run ", c.next())), nil
	}
}
