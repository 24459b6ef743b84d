package connectlock_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast/core"
	connectlock "github.com/holdfast-go/holdfast/middleware/connect"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestWholeReplay: a response is replayed whole in each protocol, whichever way the handler set its metadata.
func TestWholeReplay(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	for _, p := range protocols {
		var c counter
		cl := serve(t, p, func(ctx context.Context, r *request) (*response, error) {
			c.next()
			if info, ok := connect.CallInfoForHandlerContext(ctx); ok {
				info.ResponseHeader().Add("X-Info", "1")
				info.ResponseTrailer().Add("X-Info-End", "2")
			}
			if r.Msg.GetValue() == "fail" {
				err := connect.NewError(connect.CodeNotFound, errors.New("no such order"))
				for _, m := range []proto.Message{&errdetails.ResourceInfo{ResourceName: "order 7"}, wrapperspb.String("more")} {
					if d, err2 := connect.NewErrorDetail(m); err2 == nil {
						err.AddDetail(d)
					}
				}
				err.Meta().Set("X-Meta", "3")
				return nil, err
			}
			resp := responseOf("first")
			resp.Header().Add("X-A", "1")
			resp.Header().Add("X-A", "2")
			resp.Header().Set("Set-Cookie", "secret")
			resp.Trailer().Set("X-End", "3")
			return resp, nil
		}, patientIdempotent(locks, connectlock.Constant(p.name)))
		one, two := call(t.Context(), cl, "k", "ok"), call(t.Context(), cl, "k", "ok")
		one.want(t, 0, "", false)
		two.want(t, 0, "", true)
		if got := two.payload + strings.Join(two.header["X-A"], "") + two.header.Get("X-Info") + two.trailer.Get("X-End") + two.trailer.Get("X-Info-End") +
			two.header.Get("Set-Cookie"); got != "first12132" {
			t.Errorf("%s: %q: %+v, then %+v", p.name, got, one, two)
		}
		one, two = call(t.Context(), cl, "failure", "fail"), call(t.Context(), cl, "failure", "fail")
		one.want(t, connect.CodeNotFound, "", false)
		two.want(t, connect.CodeNotFound, "", true)
		if info := detail[*errdetails.ResourceInfo](two.err); info.GetResourceName() != "order 7" || two.header.Get("X-Meta") != "3" ||
			two.err.Error() != one.err.Error() || detail[*wrapperspb.StringValue](two.err).GetValue() != "more" {
			t.Errorf("%s: %v, then %v: %v", p.name, one.err, two.err, two.header)
		}
		c.want(t, 2)
	}
}

// TestRetryByAnotherEncoding: one in JSON, as through a transcoder, is the same request.
func TestRetryByAnotherEncoding(t *testing.T) {
	t.Parallel()
	var c counter
	mux := http.NewServeMux()
	mux.Handle(unaryCall, connect.NewUnaryHandler(unaryCall, counting(&c), connect.WithInterceptors(
		patientIdempotent(newLocks(t), connectlock.Unscoped()))))
	url := listen(t, mux)
	for i, p := range protocols {
		cl := connect.NewClient[wrapperspb.StringValue, wrapperspb.StringValue](httpClient(t, p.http1), url+unaryCall, p.opts...)
		call(t.Context(), cl, "k", "x").want(t, 0, "", i > 0)
		call(t.Context(), cl, "k", "y").want(t, connect.CodeInvalidArgument, "IDEMPOTENCY_KEY_REUSED", false)
	}
	c.want(t, 1)
}

// TestRefusalDetails: they arrive in each protocol.
func TestRefusalDetails(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	for _, p := range protocols {
		began, end := make(chan struct{}, 1), make(chan struct{})
		cl := serve(t, p, func(context.Context, *request) (*response, error) {
			began <- struct{}{}
			<-end
			return nil, connect.NewError(connect.CodeUnavailable, errors.New("the bank does not answer"))
		}, patientIdempotent(locks, connectlock.Constant(p.name), core.WithFailurePolicy(core.HoldFailures)))
		first := make(chan answer, 1)
		go func() { first <- call(t.Context(), cl, "k", "x") }()
		<-began
		a := call(t.Context(), cl, "k", "x")
		a.want(t, connect.CodeAborted, "REQUEST_IN_PROGRESS", false)
		if detail[*errdetails.RetryInfo](a.err).GetRetryDelay().AsDuration() <= 0 {
			t.Errorf("%s: %v", p.name, a.err)
		}
		a = call(t.Context(), cl, "", "x")
		a.want(t, connect.CodeInvalidArgument, "KEY_REQUIRED", false)
		if bad := detail[*errdetails.BadRequest](a.err).GetFieldViolations(); len(bad) != 1 || bad[0].GetField() != "idempotency-key" {
			t.Errorf("%s: %v", p.name, bad)
		}
		close(end)
		(<-first).want(t, connect.CodeFailedPrecondition, "OUTCOME_UNKNOWN", false)
		call(t.Context(), cl, "k", "x").want(t, connect.CodeFailedPrecondition, "OUTCOME_UNKNOWN", false)
	}
}

// TestCodes: an error without a code is judged as connect codes it.
func TestCodes(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	for _, test := range []struct {
		err    error
		code   connect.Code
		reruns bool // with HoldFailures
	}{
		{errors.New("after the effect"), connect.CodeUnknown, false},
		{context.DeadlineExceeded, connect.CodeDeadlineExceeded, false},
		{fmt.Errorf("wrapped: %w", context.Canceled), connect.CodeCanceled, false},
		{connect.NewError(connect.CodeInternal, nil), connect.CodeInternal, false},
		{connect.NewError(connect.CodePermissionDenied, nil), connect.CodePermissionDenied, true},
		{fmt.Errorf("wrapped: %w", connect.NewError(connect.CodeResourceExhausted, nil)), connect.CodeResourceExhausted, true},
	} {
		var c counter
		cl := serve(t, protocols[1], func(context.Context, *request) (*response, error) {
			c.next()
			return nil, test.err
		}, patientOnce(locks, connectlock.Constant(test.code.String()), core.WithFailurePolicy(core.HoldFailures)))
		call(t.Context(), cl, "", "x").want(t, test.code, "", false)
		if test.reruns {
			call(t.Context(), cl, "", "x").want(t, test.code, "", false)
			c.want(t, 2)
			continue
		}
		call(t.Context(), cl, "", "x").want(t, connect.CodeFailedPrecondition, "OUTCOME_UNKNOWN", false)
		c.want(t, 1)
	}
}

// TestLostLease: a run whose lease was lost is answered LEASE_LOST in whatever form its handler reports the loss.
func TestLostLease(t *testing.T) {
	t.Parallel()
	relay := testkit.Start(t).Relay()
	locks, err := core.New(relay.Client(), core.WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	forms := map[string]struct {
		of   func(context.Context) error
		want string
	}{
		"error of the context": {func(ctx context.Context) error { return ctx.Err() }, "LEASE_LOST"},
		"cause":                {context.Cause, "LEASE_LOST"},
		"code": {func(ctx context.Context) error {
			return connect.NewError(connect.CodeCanceled, errors.New("it has ended"))
		}, "LEASE_LOST"},
		"cause with a code": {func(ctx context.Context) error {
			return connect.NewError(connect.CodeInternal, context.Cause(ctx))
		}, "LEASE_LOST"},
		"another error": {func(context.Context) error {
			return connect.NewError(connect.CodeInternal, errors.New("of the handler"))
		}, ""},
		"success": {func(context.Context) error { return nil }, ""},
	}
	began := make(chan struct{}, len(forms))
	cl := serve(t, protocols[1], func(ctx context.Context, r *request) (*response, error) {
		began <- struct{}{}
		<-ctx.Done()
		return responseOf("done"), forms[r.Msg.GetValue()].of(ctx)
	}, patientIdempotent(locks, connectlock.Unscoped(), core.WithTTL(time.Second), connectlock.WithFinishTimeout(time.Second)))
	var calls sync.WaitGroup
	for form, test := range forms {
		calls.Go(func() {
			if a := call(t.Context(), cl, form, form); a.reason() != test.want {
				t.Errorf("%s: %q, want %q: %v", form, a.reason(), test.want, a.err)
			}
		})
	}
	for range forms {
		<-began
	}
	relay.Refuse(true)
	relay.Reset()
	calls.Wait()
	relay.Heal()
}

type streamClient = connect.Client[wrapperspb.StringValue, wrapperspb.StringValue]

// stream calls the streaming method, and returns the error.
func stream(t testing.TB, c *streamClient, key string) answer {
	t.Helper()
	req := requestOf("x")
	req.Header().Set("Cart", key)
	s, err := c.CallServerStream(t.Context(), req)
	if err != nil {
		return answer{err: err}
	}
	for s.Receive() {
	}
	_ = s.Close()
	return answer{err: s.Err()}
}

// TestStreams: a stream passes no guard of unary calls in silence, and ExclusiveStream holds its lock until the handler returns.
func TestStreams(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	began, end := make(chan struct{}, 1), make(chan struct{}, 1)
	cart := connectlock.ByMetadata("Cart")
	with := func(interceptor connect.Interceptor) *streamClient {
		mux := http.NewServeMux()
		mux.Handle(duplex, connect.NewServerStreamHandler(duplex, func(
			_ context.Context, r *request, s *connect.ServerStream[wrapperspb.StringValue],
		) error {
			began <- struct{}{}
			<-end
			return s.Send(r.Msg)
		}, connect.WithInterceptors(interceptor)))
		return connect.NewClient[wrapperspb.StringValue, wrapperspb.StringValue](httpClient(t, false), listen(t, mux)+duplex)
	}
	for name, guard := range map[string]connect.Interceptor{
		"Once": patientOnce(locks, cart), "Idempotent": patientIdempotent(locks, cart), "Exclusive": patientExclusive(locks.Mutex, cart),
	} {
		if a := stream(t, with(guard), "7"); a.code() != connect.CodeInternal || !strings.Contains(a.err.Error(), duplex) {
			t.Errorf("%s: %v", name, a.err)
		}
	}
	cl := with(connectlock.For(duplex, connectlock.ExclusiveStream(locks.Mutex, cart, core.WithWait(0))))
	first := make(chan answer, 1)
	go func() { first <- stream(t, cl, "7") }()
	<-began
	if a := stream(t, cl, "7"); a.code() != connect.CodeAborted || a.reason() != "LOCK_CONFLICT" {
		t.Error(a.err)
	}
	end <- struct{}{}
	if a := <-first; a.err != nil {
		t.Error(a.err)
	}
	if a := call(t.Context(), serve(t, protocols[1], counting(new(counter)), connectlock.ExclusiveStream(locks.Mutex, cart)), "k", "x"); a.code() != connect.CodeInternal {
		t.Error(a.err)
	}
}

// TestPanicIsSentAgain: net/http closes the connection of a handler that panics. Go's http.Transport then sends a call with an
// Idempotency-Key again by itself, if the connection was used before. By default the second one runs.
func TestPanicIsSentAgain(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	recovers := connect.WithRecover(func(context.Context, connect.Spec, http.Header, any) error {
		return connect.NewError(connect.CodeInternal, errors.New("the handler has panicked"))
	})
	plain := connect.WithInterceptors(patientIdempotent(locks, connectlock.Unscoped()))
	hold := connect.WithInterceptors(patientIdempotent(locks, connectlock.Unscoped(), core.WithFailurePolicy(core.HoldFailures)))
	for name, test := range map[string]struct {
		http1 bool
		opts  []connect.HandlerOption
		runs  int
		code  connect.Code
	}{
		"By default":       {true, []connect.HandlerOption{plain}, 2, connect.CodeUnavailable},
		"Over h2c":         {false, []connect.HandlerOption{plain}, 1, connect.CodeInternal},
		"Recovered around": {true, []connect.HandlerOption{recovers, plain}, 1, connect.CodeInternal},
		"Recovered inside": {true, []connect.HandlerOption{plain, recovers}, 1, connect.CodeInternal},
		"Held":             {true, []connect.HandlerOption{hold}, 1, connect.CodeFailedPrecondition},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c counter
			mux := http.NewServeMux()
			mux.Handle(unaryCall, connect.NewUnaryHandler(unaryCall, func(_ context.Context, r *request) (*response, error) {
				if r.Msg.GetValue() == "panic" {
					c.next()
					panic("application")
				}
				return responseOf("x"), nil
			}, test.opts...))
			cl := connect.NewClient[wrapperspb.StringValue, wrapperspb.StringValue](httpClient(t, test.http1), listen(t, mux)+unaryCall)
			call(t.Context(), cl, name+" first", "connects").want(t, 0, "", false)
			if a := call(t.Context(), cl, name, "panic"); a.code() != test.code {
				t.Error(a.err)
			}
			c.want(t, test.runs)
		})
	}
}

// TestClientSide: a guard in a client guards nothing, and says so.
func TestClientSide(t *testing.T) {
	t.Parallel()
	guard := patientOnce(newLocks(t), connectlock.ByMethod())
	cl := connect.NewClient[wrapperspb.StringValue, wrapperspb.StringValue](
		http.DefaultClient, "http://127.0.0.1:1"+unaryCall, connect.WithInterceptors(guard))
	if a := call(t.Context(), cl, "k", "x"); a.code() != connect.CodeInternal {
		t.Error(a.err)
	}
}

func TestFor(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	unary, streams := patientOnce(locks, connectlock.ByMethod()), connectlock.ExclusiveStream(locks.Mutex, connectlock.ByMethod())
	for _, test := range []struct {
		prefix string
		guard  connect.Interceptor
		want   bool
	}{
		{unaryCall, unary, true},
		{service, unary, false},
		{duplex, unary, false},
		{duplex, streams, true},
		{unaryCall, streams, false},
		{service + "None", unary, false},
		{"/none.None/", unary, false},
		{unaryCall, nil, false},
	} {
		func() {
			defer func() {
				if got := recover() == nil; got != test.want {
					t.Errorf("For(%q, %T) accepted: %v", test.prefix, test.guard, got)
				}
			}()
			connectlock.For(test.prefix, test.guard)
		}()
	}
	var c counter
	cl := serve(t, protocols[1], counting(&c), connectlock.For(get, unary))
	for range 2 {
		call(t.Context(), cl, "", "x").want(t, 0, "", false)
	}
	c.want(t, 2)
}

// TestNoSideEffects: also by GET.
func TestNoSideEffects(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	for name, test := range map[string]struct {
		guard  connect.Interceptor
		passes bool
	}{
		"Once":       {patientOnce(locks, connectlock.ByMethod()), true},
		"Idempotent": {patientIdempotent(locks, connectlock.Unscoped()), true},
		"Exclusive":  {patientExclusive(locks.Mutex, connectlock.ByMetadata("none")), false},
	} {
		var c counter
		mux := http.NewServeMux()
		mux.Handle(get, connect.NewUnaryHandler(get, counting(&c), connect.WithIdempotency(connect.IdempotencyNoSideEffects),
			connect.WithInterceptors(test.guard)))
		cl := connect.NewClient[wrapperspb.StringValue, wrapperspb.StringValue](httpClient(t, true), listen(t, mux)+get,
			connect.WithHTTPGet(), connect.WithIdempotency(connect.IdempotencyNoSideEffects))
		for range 2 {
			if a := call(t.Context(), cl, "", "x"); (a.err == nil) != test.passes {
				t.Errorf("%s: %v", name, a.err)
			}
		}
	}
}

// TestUnknownType: another build has answered with a message that this one does not have.
func TestUnknownType(t *testing.T) {
	t.Parallel()
	f, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("newer.proto"), Package: proto.String("newer"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("Receipt")}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	newer := connect.UnaryInterceptorFunc(func(connect.UnaryFunc) connect.UnaryFunc {
		return func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) {
			return &other{connect.NewResponse(&wrapperspb.StringValue{}), dynamicpb.NewMessage(f.Messages().Get(0))}, nil
		}
	})
	cl := serve(t, protocols[1], nil, patientIdempotent(newLocks(t), connectlock.Unscoped()), newer)
	call(t.Context(), cl, "k", "x").want(t, 0, "", false)
	call(t.Context(), cl, "k", "x").want(t, connect.CodeAlreadyExists, "RESPONSE_TYPE_UNKNOWN", false)
}

type other struct {
	connect.AnyResponse
	message any
}

func (o *other) Any() any { return o.message }

// TestInterceptors: those around a guard see a response that is sent again as any other.
func TestInterceptors(t *testing.T) {
	t.Parallel()
	var c counter
	var seen []string
	around := connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			resp, err := next(ctx, req)
			if err == nil {
				seen = append(seen, resp.Any().(*wrapperspb.StringValue).GetValue()+resp.Header().Get("Idempotency-Replayed"))
				resp.Header().Set("X-Around", "1")
			}
			return resp, err
		}
	})
	cl := serve(t, protocols[1], counting(&c), around, patientIdempotent(newLocks(t), connectlock.Unscoped()))
	for i := range 2 {
		a := call(t.Context(), cl, "k", "x")
		a.want(t, 0, "", i > 0)
		if len(a.header["X-Around"]) != 1 {
			t.Errorf("header %v", a.header)
		}
	}
	if strings.Join(seen, ",") != "run 1,run 1true" {
		t.Errorf("seen %q", seen)
	}
}

// TestPeer: WithTLS hands the client's certificate to ByPeer.
func TestPeer(t *testing.T) {
	t.Parallel()
	var c counter
	guard := patientIdempotent(newLocks(t), connectlock.ByPeer())
	handler := connect.NewUnaryHandler(unaryCall, counting(&c), connect.WithInterceptors(guard))
	leaf := &x509.Certificate{Subject: pkix.Name{CommonName: "ada"}}
	for _, test := range []struct {
		state    *tls.ConnectionState
		code     connect.Code
		reason   string
		replayed bool
	}{
		{&tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}, VerifiedChains: [][]*x509.Certificate{{leaf}}}, 0, "", false},
		{&tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}, VerifiedChains: [][]*x509.Certificate{{leaf}}}, 0, "", true},
		{&tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}}, connect.CodeUnauthenticated, "SCOPE_REQUIRED", false},
		{nil, connect.CodeUnauthenticated, "SCOPE_REQUIRED", false},
	} {
		url := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.TLS = test.state
			connectlock.WithTLS(handler).ServeHTTP(w, r)
		}))
		cl := connect.NewClient[wrapperspb.StringValue, wrapperspb.StringValue](httpClient(t, true), url+unaryCall)
		call(t.Context(), cl, "k", "x").want(t, test.code, test.reason, test.replayed)
	}
	c.want(t, 1)
}

// TestLargeMessages: and a response above the limit is not replayed.
func TestLargeMessages(t *testing.T) {
	t.Parallel()
	var c counter
	cl := serve(t, protocols[1], func(_ context.Context, r *request) (*response, error) {
		c.next()
		return responseOf(r.Msg.GetValue()), nil
	}, patientIdempotent(newLocks(t), connectlock.Unscoped(), core.WithMaxValue(10<<20)))
	small := serve(t, protocols[1], func(_ context.Context, r *request) (*response, error) {
		return responseOf(r.Msg.GetValue()), nil
	}, patientIdempotent(newLocks(t), connectlock.Unscoped()))
	large := strings.Repeat("x", 3<<20)
	for i := range 2 {
		if a := call(t.Context(), cl, "k", large); a.payload != large || a.replayed() != (i > 0) {
			t.Errorf("%d bytes, %v", len(a.payload), a.err)
		}
	}
	c.want(t, 1)
	call(t.Context(), small, "k", large).want(t, 0, "", false)
	call(t.Context(), small, "k", large).want(t, connect.CodeAlreadyExists, "ALREADY_COMPLETED", false)
}

// TestShortDeadlineIsLogged: calls whose deadline passes before the guard gives up on a frozen Redis leave the line of the outage, once.
func TestShortDeadlineIsLogged(t *testing.T) {
	t.Parallel()
	for _, p := range protocols {
		server, log, nots := testkit.Start(t), new(testkit.Log), make(chan core.NotRun, 100)
		locks, err := core.New(server.Client(), core.WithLogger(slog.New(slog.NewTextHandler(log, nil))), core.WithHooks(core.Hooks{
			NotRun: func(_ context.Context, n core.NotRun) { nots <- n },
		}))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = locks.Close() })
		cl := serve(t, p, counting(new(counter)), patientIdempotent(locks, connectlock.Unscoped()))
		call(t.Context(), cl, "before", "x").want(t, 0, "", false)
		server.Pause()
		const line = "Redis did not answer or refused the guard's command"
		for i := 0; i < 3 || i < 50 && !strings.Contains(log.String(), line); i++ { // a busy machine may ask Redis just before the deadline
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			if a := call(ctx, cl, "k", "x"); a.err == nil {
				t.Errorf("%s: a call was answered without Redis", p.name)
			}
			cancel()
			select {
			case <-nots:
			case <-time.After(time.Second): // the call did not reach the guard
			}
		}
		server.Resume()
		if text := log.String(); strings.Count(text, line) != 1 || !strings.Contains(text, "level=ERROR") {
			t.Errorf("%s: log: %s", p.name, text)
		}
	}
}
