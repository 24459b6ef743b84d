package grpclock_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast/core"
	grpclock "github.com/holdfast-go/holdfast/middleware/grpc"
)

// outer sets metadata in front of the guard.
func outer(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	_ = grpc.SetHeader(ctx, metadata.Pairs("x-both", "outer", "x-outer", "1"))
	_ = grpc.SetTrailer(ctx, metadata.Pairs("x-end", "outer"))
	return handler(ctx, req)
}

// TestWholeReplay: message, header and trailer are the first response's, whichever way the handler set them.
func TestWholeReplay(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	for name, send := range map[string]func(context.Context, metadata.MD) error{"SetHeader": grpc.SetHeader, "SendHeader": grpc.SendHeader} {
		for _, failure := range []error{nil, notFound(t)} {
			var c counter
			client := serve(t, &testService{unary: func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
				c.next()
				_ = grpc.SetHeader(ctx, metadata.Pairs("x-a", "1", "x-a", "2", "x-bin", "\x00\xff", "authorization", "secret"))
				if err := send(ctx, metadata.Pairs("x-both", "inner")); err != nil {
					t.Error(err)
				}
				_ = grpc.SetTrailer(ctx, metadata.Pairs("x-end", "inner"))
				_ = grpc.SetTrailer(ctx, metadata.Pairs("x-end", "again"))
				return response("first"), failure
			}}, grpc.ChainUnaryInterceptor(outer, patientIdempotent(locks, grpclock.Constant(name+status.Code(failure).String()))))
			one := call(t.Context(), client, "k", "x")
			two := call(t.Context(), client, "k", "x")
			c.want(t, 1)
			if !two.replayed() || one.replayed() || two.header.Get("idempotency-replayed")[0] != "true" {
				t.Errorf("%s: marked %v, then %v", name, one.header, two.header)
			}
			if !proto.Equal(one.SimpleResponse, two.SimpleResponse) || !proto.Equal(status.Convert(one.err).Proto(), status.Convert(two.err).Proto()) {
				t.Errorf("%s: %v, %v, then %v, %v", name, one.SimpleResponse, one.err, two.SimpleResponse, two.err)
			}
			for _, md := range []string{"x-a", "x-both", "x-outer", "x-bin"} {
				if strings.Join(one.header.Get(md), ",") != strings.Join(two.header.Get(md), ",") || len(one.header.Get(md)) == 0 {
					t.Errorf("%s: header %s %q, then %q", name, md, one.header.Get(md), two.header.Get(md))
				}
			}
			if got := strings.Join(two.trailer.Get("x-end"), ","); got != "outer,inner,again" {
				t.Errorf("%s: trailer %q", name, got)
			}
			if len(two.header.Get("authorization")) > 0 {
				t.Errorf("%s: a credential was recorded", name)
			}
		}
	}
}

// notFound is an error with details.
func notFound(t testing.TB) error {
	t.Helper()
	s, err := status.New(codes.NotFound, "no such order").WithDetails(
		&errdetails.ResourceInfo{ResourceName: "order 7"}, wrapperspb.String("more"))
	if err != nil {
		t.Fatal(err)
	}
	return s.Err()
}

// TestOtherTransport: what is set on the stream of another transport is recorded as well.
func TestOtherTransport(t *testing.T) {
	t.Parallel()
	guard := patientIdempotent(newLocks(t), grpclock.Unscoped())
	ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("idempotency-key", "k"))
	info := &grpc.UnaryServerInfo{FullMethod: unaryCall}
	for i := range 2 {
		stream := new(fakeStream)
		resp, err := guard(grpc.NewContextWithServerTransportStream(ctx, stream), request("x"), info, func(ctx context.Context, _ any) (any, error) {
			_ = grpc.SetHeader(ctx, metadata.Pairs("a", "1"))
			_ = grpc.SendHeader(ctx, metadata.Pairs("b", "2"))
			_ = grpc.SetTrailer(ctx, metadata.Pairs("c", "3"))
			return response("first"), nil
		})
		if err != nil || !proto.Equal(resp.(proto.Message), response("first")) || stream.header.Get("a")[0]+stream.header.Get("b")[0] != "12" ||
			stream.trailer.Get("c")[0] != "3" || len(stream.header.Get("idempotency-replayed")) != i {
			t.Errorf("%d: %v, %v, %+v", i, resp, err, stream)
		}
	}
	// Without a transport, as in a test of a handler, there is nothing to set.
	if _, err := guard(ctx, request("x"), info, nil); err == nil {
		t.Error("a header was sent nowhere")
	}
}

type fakeStream struct {
	grpc.ServerTransportStream
	header, trailer metadata.MD
}

func (s *fakeStream) SetHeader(md metadata.MD) error {
	s.header = metadata.Join(s.header, md)
	return nil
}

func (s *fakeStream) SendHeader(md metadata.MD) error { return s.SetHeader(md) }

func (s *fakeStream) SetTrailer(md metadata.MD) error {
	s.trailer = metadata.Join(s.trailer, md)
	return nil
}

// TestUnknownType: another build has answered with a message that this one does not have.
func TestUnknownType(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	f, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("newer.proto"), Package: proto.String("newer"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("Receipt")}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	guard := patientIdempotent(locks, grpclock.Unscoped())
	ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("idempotency-key", "k"))
	info := &grpc.UnaryServerInfo{FullMethod: unaryCall}
	if _, err := guard(ctx, request("x"), info, func(context.Context, any) (any, error) {
		return dynamicpb.NewMessage(f.Messages().Get(0)), nil
	}); err != nil {
		t.Fatal(err)
	}
	client := serve(t, &testService{}, grpc.UnaryInterceptor(guard))
	a := call(t.Context(), client, "k", "x")
	a.want(t, codes.AlreadyExists, "RESPONSE_TYPE_UNKNOWN", false)
	if text := a.err.Error(); !strings.Contains(text, "type of its response: newer.Receipt") || strings.Contains(text, "rpc:") {
		t.Error(a.err)
	}
}

// TestSize: a response above the limit is not replayed, and an error above it without its details.
func TestSize(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	var failure error
	var c counter
	client := serve(t, &testService{unary: func(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
		c.next()
		return response(strings.Repeat("x", 2000)), failure
	}}, grpc.UnaryInterceptor(patientIdempotent(locks, grpclock.Unscoped(), core.WithMaxValue(1000))))
	call(t.Context(), client, "large", "x").want(t, codes.OK, "", false)
	call(t.Context(), client, "large", "x").want(t, codes.AlreadyExists, "ALREADY_COMPLETED", false)
	s, err := status.New(codes.NotFound, "no such order").WithDetails(wrapperspb.String(strings.Repeat("x", 2000)))
	if err != nil {
		t.Fatal(err)
	}
	failure = s.Err()
	call(t.Context(), client, "error", "x").want(t, codes.NotFound, "", false)
	again := call(t.Context(), client, "error", "x")
	again.want(t, codes.NotFound, "", true)
	if len(status.Convert(again.err).Details()) > 0 || status.Convert(again.err).Message() != "no such order" {
		t.Error(again.err)
	}
	c.want(t, 2)
}

// TestCodec: what is stored cannot be read, and what cannot be decrypted is not replayed.
func TestCodec(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	var c counter
	with := func(key byte) testpb.TestServiceClient {
		codec, err := grpclock.NewAESGCM([]byte(strings.Repeat(string(key), 16)))
		if err != nil {
			t.Fatal(err)
		}
		return serve(t, counting(&c), grpc.UnaryInterceptor(patientIdempotent(locks, grpclock.Unscoped(), grpclock.WithCodec(codec))))
	}
	one, other := with('a'), with('b')
	call(t.Context(), one, "k", "x").want(t, codes.OK, "", false)
	call(t.Context(), one, "k", "x").want(t, codes.OK, "", true)
	call(t.Context(), other, "k", "x").want(t, codes.AlreadyExists, "ALREADY_COMPLETED", false)
	c.want(t, 1)
}

// TestCompression: a handler can choose the compressor behind a guard, and a response is replayed to a client of another one.
func TestCompression(t *testing.T) {
	t.Parallel()
	var c counter
	client := serve(t, &testService{unary: func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
		c.next()
		if err := grpc.SetSendCompressor(ctx, gzip.Name); err != nil {
			t.Error(err)
		}
		return response(strings.Repeat("x", 100_000)), nil
	}}, grpc.UnaryInterceptor(patientIdempotent(newLocks(t), grpclock.Unscoped())))
	payload := strings.Repeat("y", 1_000_000)
	call(t.Context(), client, "k", payload, grpc.UseCompressor(gzip.Name)).want(t, codes.OK, "", false)
	again := call(t.Context(), client, "k", payload)
	again.want(t, codes.OK, "", true)
	if len(again.GetPayload().GetBody()) != 100_000 {
		t.Errorf("%d bytes", len(again.GetPayload().GetBody()))
	}
	c.want(t, 1)
}

// TestBadHandlers: what a handler must not do gets a clear status, and nothing is half-done.
func TestBadHandlers(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("idempotency-key", "k"))
	info := &grpc.UnaryServerInfo{FullMethod: unaryCall}
	var typedNil *testpb.SimpleResponse
	for name, test := range map[string]struct {
		request, response any
		policy            core.FailurePolicy
		first, second     string
	}{
		"neither a message nor an error":       {request("x"), nil, core.RetryFailures, "NO_ANSWER", "NO_ANSWER"},
		"neither a message nor an error, held": {request("x"), nil, core.HoldFailures, "OUTCOME_UNKNOWN", "OUTCOME_UNKNOWN"},
		"a typed nil":                          {request("x"), typedNil, core.RetryFailures, "NO_ANSWER", "NO_ANSWER"},
		"a typed nil, held":                    {request("x"), typedNil, core.HoldFailures, "OUTCOME_UNKNOWN", "OUTCOME_UNKNOWN"},
		"no message of protobuf":               {request("x"), "text", core.RetryFailures, "", "ALREADY_COMPLETED"},
		"a request that is none":               {"text", response("x"), core.RetryFailures, "KEY_FAILED", "KEY_FAILED"},
		"a nil request":                        {nil, response("x"), core.RetryFailures, "KEY_FAILED", "KEY_FAILED"},
		"a typed nil request":                  {(*testpb.SimpleRequest)(nil), response("x"), core.RetryFailures, "", replayed},
	} {
		guard := patientIdempotent(locks, grpclock.Constant(name), core.WithFailurePolicy(test.policy))
		for i, want := range []string{test.first, test.second} {
			stream := new(fakeStream)
			_, err := guard(grpc.NewContextWithServerTransportStream(ctx, stream), test.request, info, func(context.Context, any) (any, error) {
				return test.response, nil
			})
			got := answer{err: err}.reason()
			if err == nil && len(stream.header) > 0 {
				got = replayed
			}
			if got != want {
				t.Errorf("%s, call %d: %q, want %q: %v", name, i+1, got, want, err)
			}
		}
	}
	var c counter
	twice := serve(t, &testService{unary: func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
		if err := grpc.SendHeader(ctx, metadata.Pairs("a", "1")); err != nil {
			t.Error(err)
		}
		if err := grpc.SendHeader(ctx, metadata.Pairs("a", "2")); err == nil {
			t.Error("headers were sent twice")
		}
		return response("x"), nil
	}}, grpc.UnaryInterceptor(patientIdempotent(locks, grpclock.Constant("headers twice"))))
	call(t.Context(), twice, "k", "x").want(t, codes.OK, "", false)
	again := call(t.Context(), twice, "k", "x")
	again.want(t, codes.OK, "", true)
	if got := again.header.Get("a"); len(got) != 1 || got[0] != "1" {
		t.Errorf("header %q", got)
	}
	c.want(t, 0)
}

// TestOperator: Peek finds the record by the parts of its key, Resolve answers its retries, Forget lets the next call run.
func TestOperator(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	guard, err := grpclock.NewIdempotent(locks, grpclock.Keys(grpclock.ByMethod(), grpclock.Constant("tenant")),
		core.WithFailurePolicy(core.HoldFailures))
	if err != nil {
		t.Fatal(err)
	}
	var c counter
	client := serve(t, &testService{unary: func(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
		c.next()
		return nil, errEffect
	}}, grpc.UnaryInterceptor(guard.Unary))
	for _, key := range []string{"resolved", "without", "forgotten"} {
		call(t.Context(), client, key, "x").want(t, codes.Unknown, "", false)
	}
	peek := func(key string, state core.State) core.Record {
		t.Helper()
		r, err := guard.Peek(t.Context(), unaryCall, key)
		if err != nil || r.State != state {
			t.Fatalf("%+v, %v", r, err)
		}
		return r
	}
	for key, resp := range map[string]proto.Message{"resolved": response("by hand"), "without": nil} {
		seen := peek(key, core.StateUnknown)
		if err := guard.Resolve(t.Context(), seen, new(testpb.ReconnectParams)); err == nil || !strings.Contains(err.Error(), "SimpleResponse") {
			t.Errorf("a message of another type: %v", err)
		}
		if err := guard.Resolve(t.Context(), seen, resp); err != nil {
			t.Fatal(err)
		}
	}
	call(t.Context(), client, "resolved", "x").want(t, codes.OK, "", true)
	call(t.Context(), client, "without", "x").want(t, codes.AlreadyExists, "ALREADY_COMPLETED", false)
	if err := guard.Resolve(t.Context(), peek("without", core.StateCompleted), response("later")); err != nil {
		t.Error(err)
	}
	call(t.Context(), client, "without", "x").want(t, codes.OK, "", true)
	if r := peek("resolved", core.StateCompleted); !strings.HasPrefix(string(r.Value), "OK grpc.testing.SimpleResponse {") {
		t.Errorf("%s", r.Value)
	}
	seen := peek("forgotten", core.StateUnknown)
	if err := guard.Forget(t.Context(), seen); err != nil {
		t.Fatal(err)
	}
	call(t.Context(), client, "forgotten", "x").want(t, codes.Unknown, "", false)
	c.want(t, 4)
	if err := guard.Forget(t.Context(), seen); !errors.Is(err, core.ErrChanged) {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"too few parts":  second2(guard.Peek(t.Context(), unaryCall)),
		"too many parts": second2(guard.Peek(t.Context(), unaryCall, "a", "b")),
		"foreign record": guard.Forget(t.Context(), core.Record{Key: "http:x"}),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	none, err := guard.Peek(t.Context(), unaryCall, "none")
	if err != nil || !errors.Is(guard.Forget(t.Context(), none), grpclock.ErrNoRecord) {
		t.Error(err)
	}
}

// committed is a proof that knows every key.
type committed []byte

func (c committed) Committed(context.Context, string) (*core.Committed, error) {
	return &core.Committed{Value: c}, nil
}

func (committed) Resolve(context.Context, string, core.Committed) error { return core.ErrCompleted }
func (committed) OnlyEffect() bool                                      { return false }

// TestProof: after a call that has failed, the response that was committed with the proof is replayed. A value that is no response
// is a refusal.
func TestProof(t *testing.T) {
	t.Parallel()
	any, err := anypb.New(response("committed"))
	if err != nil {
		t.Fatal(err)
	}
	stored, err := proto.Marshal(any)
	if err != nil {
		t.Fatal(err)
	}
	locks := newLocks(t)
	for name, value := range map[string][]byte{"stored": stored, "none": nil, "other": []byte("paid")} {
		client := serve(t, &testService{unary: func(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			return nil, status.Error(codes.Unavailable, "away")
		}}, grpc.ChainUnaryInterceptor(patientIdempotent(locks, grpclock.Constant(name), core.WithProof(committed(value)))))
		if first := call(t.Context(), client, "k", "x"); status.Code(first.err) != codes.Unavailable {
			t.Errorf("%s: %v", name, first.err)
		}
		got := call(t.Context(), client, "k", "x")
		if name == "stored" {
			if got.err != nil || !got.replayed() || !proto.Equal(got.SimpleResponse, response("committed")) {
				t.Errorf("%s: %v, %v", name, got.SimpleResponse, got.err)
			}
		} else if got.err == nil || status.Code(got.err) == codes.Unavailable {
			t.Errorf("%s: %v", name, got.err)
		}
	}
}
