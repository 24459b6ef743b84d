// Package guards has what the servers of Connect's conformance tests are given: guards for each of their methods, and an interceptor
// that makes a client call twice.
package guards

import (
	"context"
	"errors"
	"os"
	"slices"

	"connectrpc.com/connect"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-go/holdfast/core"
	connectlock "github.com/holdfast-go/holdfast/middleware/connect"
	grpclock "github.com/holdfast-go/holdfast/middleware/grpc"
)

// The variables of the environment of a server: the address of Redis, and whether each unary call is made twice, so that the client
// gets what the guard has recorded of the first.
const (
	Redis = "HOLDFAST_CONFORMANCE_REDIS"
	Twice = "HOLDFAST_CONFORMANCE_TWICE"
)

const service = "/connectrpc.conformance.v1.ConformanceService/"

var (
	unary   = []string{service + "Unary", service + "IdempotentUnary", service + "Unimplemented"}
	streams = []string{service + "ClientStream", service + "ServerStream", service + "BidiStream"}
	twice   = os.Getenv(Twice) != ""
)

// idKey is the key in the context of what identifies a call: the clients of these tests send no key.
type idKey struct{}

func identified(ctx context.Context) context.Context {
	return context.WithValue(ctx, idKey{}, uuid.NewString())
}

func newLocks() *core.Client {
	locks, err := core.New(redis.NewClient(&redis.Options{Addr: os.Getenv(Redis)}))
	if err != nil {
		panic(err)
	}
	return locks
}

// replayable reports whether the answer of a call is recorded, whose code is 0 or its error's.
func replayable(c codes.Code) bool {
	switch c {
	case codes.OK, codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.FailedPrecondition, codes.OutOfRange, codes.Unimplemented:
		return true
	}
	return false
}

// Connect returns the interceptors for a server of Connect.
func Connect() []connect.Interceptor {
	locks, id := newLocks(), connectlock.ByContext(idKey{})
	out := []connect.Interceptor{caller{}}
	for _, method := range unary {
		out = append(out,
			connectlock.For(method, connectlock.Exclusive(locks.Mutex, id)),
			connectlock.For(method, connectlock.Idempotent(locks, connectlock.Unscoped(), connectlock.WithKey(id))),
			connectlock.For(method, connectlock.Once(locks, id)))
	}
	for _, method := range streams {
		out = append(out, connectlock.For(method, connectlock.ExclusiveStream(locks.Mutex, id)))
	}
	return out
}

// caller identifies calls, and makes them twice.
type caller struct{}

func (caller) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		ctx = identified(ctx)
		message, sent := req.Any().(proto.Message), proto.Clone(req.Any().(proto.Message))
		resp, err := next(ctx, req)
		if !twice || req.Spec().IdempotencyLevel == connect.IdempotencyNoSideEffects || err != nil && !replayable(codes.Code(connect.CodeOf(err))) {
			return resp, err
		}
		proto.Reset(message) // the handler changes it
		proto.Merge(message, sent)
		again, failure := next(ctx, req)
		var coded *connect.Error
		switch {
		case ctx.Err() != nil:
			return resp, err
		case failure == nil && err == nil && again.Header().Get("Idempotency-Replayed") == "true":
			return again, nil
		case errors.As(failure, &coded) && err != nil && coded.Meta().Get("Idempotency-Replayed") == "true":
			return nil, failure
		}
		return nil, connect.NewError(connect.CodeDataLoss, errors.Join(errors.New("not replayed"), err, failure))
	}
}

func (caller) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func (caller) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error { return next(identified(ctx), conn) }
}

// Unary returns the interceptors for unary calls of a server of grpc-go.
func Unary() grpc.ServerOption {
	locks, id := newLocks(), grpclock.ByContext(idKey{})
	calls := []grpc.UnaryServerInterceptor{callUnary}
	for _, method := range unary {
		calls = append(calls,
			grpclock.For(method, grpclock.Exclusive(locks.Mutex, id)),
			grpclock.For(method, grpclock.Idempotent(locks, grpclock.Unscoped(), grpclock.WithKey(id))),
			grpclock.For(method, grpclock.Once(locks, id)))
	}
	return grpc.ChainUnaryInterceptor(calls...)
}

// Streams returns the interceptors for streams of a server of grpc-go.
func Streams() grpc.ServerOption {
	locks, id := newLocks(), grpclock.ByContext(idKey{})
	opens := []grpc.StreamServerInterceptor{
		func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			return handler(srv, &identifiedStream{stream, identified(stream.Context())})
		},
	}
	for _, method := range streams {
		opens = append(opens, grpclock.ForStream(method, grpclock.ExclusiveStream(locks.Mutex, id)))
	}
	return grpc.ChainStreamInterceptor(opens...)
}

// callUnary identifies a call, and makes it twice: the first time for a stream of its own, since the metadata of the handler would
// otherwise be sent for both.
func callUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	ctx = identified(ctx)
	if !twice || info.FullMethod == service+"IdempotentUnary" {
		return handler(ctx, req)
	}
	first := new(sent)
	resp, err := handler(grpc.NewContextWithServerTransportStream(ctx, first), proto.Clone(req.(proto.Message))) // the handler changes it
	if ctx.Err() != nil {
		return resp, err
	}
	real := grpc.ServerTransportStreamFromContext(ctx)
	if !replayable(status.Code(err)) {
		_, _ = real.SetHeader(first.header), real.SetTrailer(first.trailer)
		return resp, err
	}
	second := new(sent)
	again, failure := handler(grpc.NewContextWithServerTransportStream(ctx, second), req)
	if !slices.Equal(second.header.Get("idempotency-replayed"), []string{"true"}) {
		return nil, status.Errorf(codes.DataLoss, "not replayed: %v, %v", err, failure)
	}
	_, _ = real.SetHeader(second.header), real.SetTrailer(second.trailer)
	return again, failure
}

// sent is what was set on a stream.
type sent struct{ header, trailer metadata.MD }

func (*sent) Method() string { return "" }

func (s *sent) SetHeader(md metadata.MD) error {
	s.header = metadata.Join(s.header, md)
	return nil
}

func (s *sent) SendHeader(md metadata.MD) error { return s.SetHeader(md) }

func (s *sent) SetTrailer(md metadata.MD) error {
	s.trailer = metadata.Join(s.trailer, md)
	return nil
}

type identifiedStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *identifiedStream) Context() context.Context { return s.ctx }
