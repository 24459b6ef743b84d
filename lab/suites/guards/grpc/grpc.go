// Package grpc guards the servers of grpc-go's tests.
package grpc

import (
	"context"

	"github.com/google/uuid"
	"google.golang.org/grpc"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/lab/suites/guards/installed"
	grpclock "github.com/holdfast-go/holdfast/middleware/grpc"
)

// idKey is the key in the context of what identifies a call.
type idKey struct{}

// Install returns what adds the guards to the interceptors of a server: one of this kind for its calls, and ExclusiveStream for its
// streams.
func Install() func(*[]grpc.UnaryServerInterceptor, *[]grpc.StreamServerInterceptor) {
	kind, _ := installed.Which()
	if kind == "" {
		return func(*[]grpc.UnaryServerInterceptor, *[]grpc.StreamServerInterceptor) {}
	}
	if kind == installed.Baseline {
		return func(calls *[]grpc.UnaryServerInterceptor, streams *[]grpc.StreamServerInterceptor) {
			*calls = append([]grpc.UnaryServerInterceptor{askedCall}, *calls...)
			*streams = append([]grpc.StreamServerInterceptor{askedStream}, *streams...)
		}
	}
	locks := installed.Locks()
	call, stream := guarded(kind, locks), grpclock.ExclusiveStream(locks.Mutex, grpclock.ByContext(idKey{}))
	return func(calls *[]grpc.UnaryServerInterceptor, streams *[]grpc.StreamServerInterceptor) {
		*calls = append([]grpc.UnaryServerInterceptor{identifyCall, call}, *calls...)
		*streams = append([]grpc.StreamServerInterceptor{identifyStream, stream}, *streams...)
	}
}

func guarded(kind string, locks *core.Client) grpc.UnaryServerInterceptor {
	id := grpclock.ByContext(idKey{})
	switch kind {
	case "once":
		return grpclock.Once(locks, id)
	case "idempotent":
		return grpclock.Idempotent(locks, grpclock.Unscoped(), grpclock.WithKey(id))
	}
	return grpclock.Exclusive(locks.Mutex, id)
}

func identified(ctx context.Context) context.Context {
	return context.WithValue(ctx, idKey{}, uuid.NewString())
}

func identifyCall(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	return handler(identified(ctx), req)
}

func identifyStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	return handler(srv, &identifiedStream{stream, identified(stream.Context())})
}

func askedCall(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	installed.Ask()
	defer installed.Ask()
	return handler(ctx, req)
}

func askedStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	installed.Ask()
	defer installed.Ask()
	return handler(srv, stream)
}

type identifiedStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *identifiedStream) Context() context.Context { return s.ctx }
