package grpclock_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast/core"
	grpclock "github.com/holdfast-go/holdfast/middleware/grpc"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// await waits until a channel is closed or has a value.
func await[T any](t testing.TB, c <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("waited for %s", what)
	}
	return v
}

// blocking returns a service that sends the contexts of its calls, and returns when the test sends an error.
func blocking() (s *testService, began chan context.Context, end chan error) {
	began, end = make(chan context.Context, 8), make(chan error, 8)
	return &testService{
		unary: func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			began <- ctx
			return response("x"), <-end
		},
		stream: func(stream testpb.TestService_FullDuplexCallServer) error {
			began <- stream.Context()
			return <-end
		},
	}, began, end
}

// TestDeadlineBoundsTheWait: a call whose deadline comes before its turn is answered before the deadline.
func TestDeadlineBoundsTheWait(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	s, began, end := blocking()
	client := serve(t, s, grpc.UnaryInterceptor(patientIdempotent(locks, grpclock.Unscoped(), core.WithWait(time.Hour))))
	done := make(chan answer, 1)
	go func() { done <- call(t.Context(), client, "k", "x") }()
	await(t, began, "the first call")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	call(ctx, client, "k", "x").want(t, codes.Aborted, "REQUEST_IN_PROGRESS", false)
	if ctx.Err() != nil {
		t.Error("answered after the deadline")
	}
	waiting := make(chan answer, 1)
	go func() { waiting <- call(t.Context(), client, "k", "x") }()
	end <- nil
	await(t, done, "the first answer").want(t, codes.OK, "", false)
	await(t, waiting, "the answer of one that waits").want(t, codes.OK, "", true)
}

// TestCancelEndsTheWait: and a call that is cancelled while it runs is recorded.
func TestCancelEndsTheWait(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	nots := make(chan core.NotRun, 8)
	ends := make(chan core.RunEnd, 8)
	begins := make(chan struct{}, 64)
	locks, err := core.New(server.Client(), core.WithLogger(nil), core.WithHooks(core.Hooks{
		BeginStart: func(ctx context.Context, _ core.BeginStart) context.Context {
			begins <- struct{}{}
			return ctx
		},
		NotRun: func(_ context.Context, n core.NotRun) { nots <- n },
		RunEnd: func(_ context.Context, e core.RunEnd) { ends <- e },
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	s, began, end := blocking()
	client := serve(t, s, grpc.UnaryInterceptor(patientIdempotent(locks, grpclock.Unscoped(), core.WithWait(time.Hour))))
	ctx, leave := context.WithCancel(t.Context())
	go call(ctx, client, "k", "x")
	running := await(t, began, "the first call")
	waits, stop := context.WithCancel(t.Context())
	await(t, begins, "the first attempt")
	go call(waits, client, "k", "x")
	await(t, begins, "the second attempt")
	stop()
	if n := await(t, nots, "the end of the wait"); n.Reason != "client-gone" || n.Label != unaryCall || n.Place != "rpc" {
		t.Errorf("%+v", n)
	}
	leave()
	await(t, running.Done(), "the end of the context")
	end <- nil
	if e := await(t, ends, "the end of the run"); e.State != core.StateCompleted || e.Label != unaryCall {
		t.Errorf("%+v", e)
	}
	call(t.Context(), client, "k", "x").want(t, codes.OK, "", true)
}

// TestDetached: the handler continues when its client has left, or when the deadline of the call has passed. With HoldFailures that is
// the default, because an interrupted run would have an unknown outcome.
func TestDetached(t *testing.T) {
	t.Parallel()
	for name, option := range map[string]grpclock.Option{
		"WithDetachedContext": grpclock.WithDetachedContext(),
		"HoldFailures":        core.WithFailurePolicy(core.HoldFailures),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, began, end := blocking()
			client := serve(t, s, grpc.UnaryInterceptor(patientIdempotent(newLocks(t), grpclock.Unscoped(), option, core.WithWait(patience))))
			ctx, leave := context.WithTimeout(t.Context(), patience)
			left := make(chan answer, 1)
			go func() { left <- call(ctx, client, "k", "x") }()
			running := await(t, began, "the call")
			leave()
			await(t, left, "the client")
			if _, ends := running.Deadline(); ends || running.Err() != nil {
				t.Errorf("error %v, deadline %v", running.Err(), ends)
			}
			end <- nil
			call(t.Context(), client, "k", "x").want(t, codes.OK, "", true)
		})
	}
}

// TestGracefulStop: a call that runs ends with its record, and a client whose connection goes away is replayed by another server.
func TestGracefulStop(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	guard := patientIdempotent(locks, grpclock.Unscoped(), core.WithWait(patience))
	s, began, end := blocking()
	server := grpc.NewServer(grpc.UnaryInterceptor(guard))
	testpb.RegisterTestServiceServer(server, s)
	client := testpb.NewTestServiceClient(dial(t, server))
	done := make(chan answer, 1)
	go func() { done <- call(t.Context(), client, "k", "x") }()
	await(t, began, "the call")
	var stopped sync.WaitGroup
	stopped.Go(server.GracefulStop)
	end <- nil
	await(t, done, "the answer").want(t, codes.OK, "", false)
	stopped.Wait()
	var c counter
	other := serve(t, counting(&c), grpc.UnaryInterceptor(guard))
	call(t.Context(), other, "k", "x").want(t, codes.OK, "", true)
	c.want(t, 0)
}

// TestGoAway: connections that are closed again and again (GOAWAY) repeat nothing.
func TestGoAway(t *testing.T) {
	t.Parallel()
	var c counter
	client := serve(t, counting(&c), grpc.UnaryInterceptor(patientIdempotent(newLocks(t), grpclock.Unscoped())),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: 20 * time.Millisecond, MaxConnectionAgeGrace: patience}))
	for i := range 200 {
		call(t.Context(), client, "k", "x", grpc.WaitForReady(true)).want(t, codes.OK, "", i > 0)
		time.Sleep(time.Millisecond) // to let connections grow old
	}
	c.want(t, 1)
}

// deafConn is a connection whose client does not answer any more once it is deaf.
type deafConn struct {
	net.Conn
	deaf, closed chan struct{}
	once         sync.Once
}

func (c *deafConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	select {
	case <-c.deaf:
		<-c.closed
		return 0, net.ErrClosed
	default:
		return n, err
	}
}

func (c *deafConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// TestKeepalive: a connection that keepalive has found dead in the middle of a call ends its context. A detached
// handler continues, and a retry by another connection gets its response.
func TestKeepalive(t *testing.T) {
	t.Parallel()
	guard := patientIdempotent(newLocks(t), grpclock.Unscoped(), grpclock.WithDetachedContext(), core.WithWait(patience))
	s, began, end := blocking()
	around := make(chan context.Context, 1)
	server := grpc.NewServer(grpc.KeepaliveParams(keepalive.ServerParameters{Time: time.Second, Timeout: 50 * time.Millisecond}),
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			around <- ctx
			return handler(ctx, req)
		}, guard))
	testpb.RegisterTestServiceServer(server, s)
	listener := bufconn.Listen(1 << 20)
	deaf := make(chan struct{})
	conn := dialAt(t, server, listener, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		c, err := listener.DialContext(ctx)
		return &deafConn{Conn: c, deaf: deaf, closed: make(chan struct{})}, err
	}))
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan answer, 1)
	go func() { left <- call(ctx, testpb.NewTestServiceClient(conn), "k", "x") }()
	running := await(t, began, "the call")
	close(deaf)
	await(t, (await(t, around, "the call")).Done(), "the end of the connection")
	if running.Err() != nil {
		t.Error(running.Err())
	}
	end <- nil
	var c counter
	call(t.Context(), serve(t, counting(&c), grpc.UnaryInterceptor(guard)), "k", "x").want(t, codes.OK, "", true)
	c.want(t, 0)
	leave()
	await(t, left, "the client")
}

const retryConfig = `{"methodConfig": [{"name": [{"service": "grpc.testing.TestService"}], "retryPolicy": {
	"maxAttempts": 5, "initialBackoff": "0.01s", "maxBackoff": "0.05s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE", "ABORTED"]}}]}`

// TestServiceConfigRetries: a client that retries by itself is answered once, and never retries an outcome that is unknown.
func TestServiceConfigRetries(t *testing.T) {
	t.Parallel()
	for policy, want := range map[core.FailurePolicy]struct {
		runs   int
		code   codes.Code
		reason string
	}{
		core.RetryFailures: {2, codes.OK, ""},
		core.HoldFailures:  {1, codes.FailedPrecondition, "OUTCOME_UNKNOWN"},
	} {
		var c counter
		var attempts atomic.Int64
		server := grpc.NewServer(grpc.ChainUnaryInterceptor(
			func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
				attempts.Add(1)
				return handler(ctx, req)
			},
			patientIdempotent(newLocks(t), grpclock.Unscoped(), core.WithFailurePolicy(policy)),
		))
		testpb.RegisterTestServiceServer(server, &testService{
			unary: func(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
				if c.next() == 1 {
					return nil, status.Error(codes.Unavailable, "the bank does not answer")
				}
				return response("x"), nil
			},
		})
		client := testpb.NewTestServiceClient(dial(t, server, grpc.WithDefaultServiceConfig(retryConfig)))
		call(t.Context(), client, "k", "x").want(t, want.code, want.reason, false)
		c.want(t, want.runs)
		if int(attempts.Load()) != want.runs {
			t.Errorf("%v: %d attempts", policy, attempts.Load())
		}
	}
}

// TestExclusiveStream: held until the handler returns, and its context ends with the lease.
func TestExclusiveStream(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	relay := server.Relay()
	locks, err := core.New(relay.Client(), core.WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	s, began, end := blocking()
	client := serve(t, s, grpc.StreamInterceptor(grpclock.ForStream(service+"FullDuplexCall",
		grpclock.ExclusiveStream(locks.Mutex, grpclock.ByMetadata("cart"), core.WithTTL(time.Second), core.WithWait(0)))))
	ctx := metadata.AppendToOutgoingContext(t.Context(), "cart", "7")
	open := func(ctx context.Context) (testpb.TestService_FullDuplexCallClient, error) {
		stream, err := client.FullDuplexCall(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return stream, nil
	}
	ended := func(stream testpb.TestService_FullDuplexCallClient) answer {
		_, err := stream.Recv()
		return answer{err: err}
	}
	one, _ := open(ctx)
	await(t, began, "the stream")
	two, _ := open(ctx)
	if a := ended(two); a.code() != codes.Aborted || a.reason() != "LOCK_CONFLICT" {
		t.Error(a.err)
	}
	none, _ := open(t.Context())
	if a := ended(none); a.reason() != "KEY_REQUIRED" {
		t.Error(a.err)
	}
	end <- status.Error(codes.NotFound, "of the handler")
	if a := ended(one); a.code() != codes.NotFound || a.reason() != "" {
		t.Error(a.err)
	}
	three, _ := open(ctx) // the lock was free before the answer to the first
	running := await(t, began, "the next stream")
	relay.Refuse(true)
	relay.Reset()
	await(t, running.Done(), "the loss")
	if !errors.Is(context.Cause(running), core.ErrLeaseLost) {
		t.Error(context.Cause(running))
	}
	end <- running.Err()
	if a := ended(three); a.code() != codes.Aborted || a.reason() != "LEASE_LOST" {
		t.Error(a.err)
	}
	relay.Heal()
}

// TestNoSideEffects: methods that have none pass Once and Idempotent, but never Exclusive.
func TestNoSideEffects(t *testing.T) {
	t.Parallel()
	f, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("safe.proto"), Package: proto.String("safe"), Dependency: []string{"google/protobuf/wrappers.proto"},
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: proto.String("Orders"), Method: []*descriptorpb.MethodDescriptorProto{{
			Name: proto.String("Get"), InputType: proto.String(".google.protobuf.StringValue"), OutputType: proto.String(".google.protobuf.StringValue"),
			Options: &descriptorpb.MethodOptions{IdempotencyLevel: descriptorpb.MethodOptions_NO_SIDE_EFFECTS.Enum()},
		}}}},
	}, protoregistry.GlobalFiles)
	if err == nil {
		err = protoregistry.GlobalFiles.RegisterFile(f)
	}
	if err != nil {
		t.Fatal(err)
	}
	locks := newLocks(t)
	info := &grpc.UnaryServerInfo{FullMethod: "/safe.Orders/Get"}
	for name, test := range map[string]struct {
		guard  grpc.UnaryServerInterceptor
		passes bool
	}{
		"Once":       {patientOnce(locks, grpclock.Constant("once")), true},
		"Idempotent": {patientIdempotent(locks, grpclock.Unscoped()), true},
		"Exclusive":  {patientExclusive(locks.Mutex, grpclock.ByMetadata("idempotency-key")), false},
	} {
		for range 2 {
			_, err := grpclock.For("/safe.Orders/", test.guard)(t.Context(), wrapperspb.String("x"), info, func(ctx context.Context, req any) (any, error) {
				if _, guarded := core.TokenFrom(ctx); guarded {
					t.Errorf("%s: guarded", name)
				}
				return req, nil
			})
			if (err == nil) != test.passes {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestInterceptors: a recovery, a timeout and a validation, around a guard and inside of one.
func TestInterceptors(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	recovery := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (_ any, err error) {
		defer func() {
			if recover() != nil {
				err = status.Error(codes.Internal, "recovered")
			}
		}()
		return handler(ctx, req)
	}
	timeout := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		return handler(ctx, req)
	}
	validation := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if string(req.(*testpb.SimpleRequest).GetPayload().GetBody()) == "invalid" {
			return nil, status.Error(codes.InvalidArgument, "invalid")
		}
		return handler(ctx, req)
	}
	for name, order := range map[string]func(guard grpc.UnaryServerInterceptor) []grpc.UnaryServerInterceptor{
		"around": func(g grpc.UnaryServerInterceptor) []grpc.UnaryServerInterceptor {
			return []grpc.UnaryServerInterceptor{recovery, timeout, validation, g}
		},
		"inside": func(g grpc.UnaryServerInterceptor) []grpc.UnaryServerInterceptor {
			return []grpc.UnaryServerInterceptor{g, recovery, timeout, validation}
		},
	} {
		var c counter
		guard := patientIdempotent(locks, grpclock.Constant(name), core.WithFailurePolicy(core.HoldFailures))
		client := serve(t, &testService{unary: func(_ context.Context, r *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			if c.next(); string(r.GetPayload().GetBody()) == "panic" {
				panic("of the handler")
			}
			return response("x"), nil
		}}, grpc.ChainUnaryInterceptor(order(guard)...))
		call(t.Context(), client, "ok", "x").want(t, codes.OK, "", false)
		call(t.Context(), client, "ok", "x").want(t, codes.OK, "", true)
		call(t.Context(), client, "panic", "panic").want(t, codes.Internal, "", false)
		call(t.Context(), client, "panic", "panic").want(t, codes.FailedPrecondition, "OUTCOME_UNKNOWN", false)
		call(t.Context(), client, "invalid", "invalid").want(t, codes.InvalidArgument, "", false)
		call(t.Context(), client, "invalid", "invalid").want(t, codes.InvalidArgument, "", name == "inside")
		c.want(t, 2)
	}
}

// TestTwoGuards: a refusal of a guard further in is no failure of the run, and the same key twice runs once.
func TestTwoGuards(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	var c counter
	outer := patientIdempotent(locks, grpclock.Constant("outer"), core.WithFailurePolicy(core.HoldFailures))
	inner := patientOnce(locks, grpclock.Constant("inner"))
	client := serve(t, counting(&c), grpc.ChainUnaryInterceptor(outer, outer, inner))
	call(t.Context(), client, "a", "x").want(t, codes.OK, "", false)
	call(t.Context(), client, "a", "x").want(t, codes.OK, "", true)
	call(t.Context(), client, "b", "x").want(t, codes.AlreadyExists, "ALREADY_COMPLETED", false)
	call(t.Context(), client, "b", "x").want(t, codes.AlreadyExists, "ALREADY_COMPLETED", false) // released, so asked again
	c.want(t, 1)
}

// TestPeer: the identity of mTLS makes the scope.
func TestPeer(t *testing.T) {
	t.Parallel()
	ca, caKey := certificate(t, "ca", nil, nil)
	pool := x509.NewCertPool()
	pool.AddCert(ca.Leaf)
	serverCert, _ := certificate(t, "server", &ca, caKey)
	var c counter
	server := grpc.NewServer(
		grpc.Creds(credentials.NewTLS(&tls.Config{
			Certificates: []tls.Certificate{serverCert}, ClientCAs: pool, ClientAuth: tls.VerifyClientCertIfGiven, MinVersion: tls.VersionTLS13,
		})),
		grpc.UnaryInterceptor(patientIdempotent(newLocks(t), grpclock.ByPeer())))
	testpb.RegisterTestServiceServer(server, counting(&c))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	client := func(certs ...tls.Certificate) testpb.TestServiceClient {
		conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
			RootCAs: pool, ServerName: "server", Certificates: certs, MinVersion: tls.VersionTLS13,
		})))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return testpb.NewTestServiceClient(conn)
	}
	ada, _ := certificate(t, "ada", &ca, caKey)
	renewed, _ := certificate(t, "ada", &ca, caKey)
	bob, _ := certificate(t, "bob", &ca, caKey)
	call(t.Context(), client(ada), "k", "x").want(t, codes.OK, "", false)
	call(t.Context(), client(renewed), "k", "x").want(t, codes.OK, "", true)
	call(t.Context(), client(bob), "k", "x").want(t, codes.OK, "", false)
	call(t.Context(), client(), "k", "x").want(t, codes.Unauthenticated, "SCOPE_REQUIRED", false)
	c.want(t, 2)
}

// certificate makes one that the other has signed.
func certificate(t *testing.T, name string, parent *tls.Certificate, parentKey *ecdsa.PrivateKey) (tls.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	uri, err := url.Parse("spiffe://example.org/" + name)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, URIs: []*url.URL{uri},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	signer, signerKey := template, key
	if parent == nil {
		template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	} else {
		signer, signerKey = parent.Leaf, parentKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer, key.Public(), signerKey)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, key
}

// TestFieldKey: the request_id of AIP-155 is the key, in place of metadata.
func TestFieldKey(t *testing.T) {
	t.Parallel()
	var c counter
	client := serve(t, counting(&c), grpc.UnaryInterceptor(patientIdempotent(newLocks(t), grpclock.Unscoped(),
		grpclock.WithKey(grpclock.ByField("response_status.message")), grpclock.WithIgnoredFields("fill_username"))))
	send := func(id, payload string, username bool) answer {
		var a answer
		r := request(payload)
		r.ResponseStatus, r.FillUsername = &testpb.EchoStatus{Message: id}, username
		a.SimpleResponse, a.err = client.UnaryCall(t.Context(), r, grpc.Header(&a.header))
		return a
	}
	send("1", "x", false).want(t, codes.OK, "", false)
	send("1", "x", true).want(t, codes.OK, "", true)
	send("1", "y", false).want(t, codes.InvalidArgument, "IDEMPOTENCY_KEY_REUSED", false)
	send("2", "x", false).want(t, codes.OK, "", false)
	send("", "x", false).want(t, codes.InvalidArgument, "KEY_REQUIRED", false)
	c.want(t, 2)
}
