package grpclock

import (
	"context"
	"crypto/tls"
	"slices"
	"strings"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/middleware/internal/rpc"
)

// Exclusive returns an interceptor that prevents two calls of one key from running at the same time. The strategy makes the lock, for
// instance locks.Mutex; with locks.Limit(n), at most n calls of a key run at a time. A call waits for the one before it for 250 ms
// unless [core.WithWait] says otherwise, at most until one second before its deadline, and is refused with ABORTED. Exclusive panics
// if an argument is nil or an option is invalid: [NewExclusive] returns an error instead.
func Exclusive(strategy core.Strategy, key KeyFunc, opts ...Option) grpc.UnaryServerInterceptor {
	return guards.Must(NewExclusive(strategy, key, opts...))
}

// NewExclusive is [Exclusive] for settings that are known only at run time: it returns an error instead of panicking.
func NewExclusive(strategy core.Strategy, key KeyFunc, opts ...Option) (grpc.UnaryServerInterceptor, error) {
	g, err := rpc.NewExclusive("grpclock.Exclusive", strategy, key, opts)
	if err != nil {
		return nil, err
	}
	return (&Guard{g}).Unary, nil
}

// ExclusiveStream is [Exclusive] for streams: the lock is held until the handler returns. The key cannot have a field of a message,
// because the guard is asked before there is one.
func ExclusiveStream(strategy core.Strategy, key KeyFunc, opts ...Option) grpc.StreamServerInterceptor {
	return guards.Must(NewExclusiveStream(strategy, key, opts...))
}

// NewExclusiveStream is [ExclusiveStream] for settings that are known only at run time: it returns an error instead of panicking.
func NewExclusiveStream(strategy core.Strategy, key KeyFunc, opts ...Option) (grpc.StreamServerInterceptor, error) {
	g, err := rpc.NewExclusiveStream("grpclock.ExclusiveStream", strategy, key, opts)
	if err != nil {
		return nil, err
	}
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		var failure error
		_, refusal := g.Do(stream.Context(), callOf(stream.Context(), info.FullMethod, true), func(ctx context.Context) *rpc.Answer {
			failure = handler(srv, &boundStream{stream, ctx})
			return &rpc.Answer{Message: struct{}{}, Status: statusOf(failure), Err: failure}
		})
		if refusal != nil {
			return refusedError{refusal}
		}
		return failure
	}, nil
}

// boundStream is a stream whose context ends with the lease.
type boundStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *boundStream) Context() context.Context { return s.ctx }

// Once returns an interceptor that lets a call of each method and key take effect once: for instance one order per user. A second
// call is refused while the first is running (ABORTED) and after it has succeeded (ALREADY_EXISTS), until the record expires. With
// [WithReplay] it gets the recorded response instead. The record lasts for 24 hours unless [core.WithRetention] says otherwise. A
// first call that has failed does not count, see [core.WithFailurePolicy]. Once panics if an argument is nil or an option is invalid:
// [NewOnce] returns an error instead.
//
// A handler guarded twice with the same key runs: the inner guard lets the run of the outer one pass, whose options apply. Only
// [core.HoldFailures] of either guard counts for both.
func Once(client *core.Client, key KeyFunc, opts ...Option) grpc.UnaryServerInterceptor {
	return guards.Must(NewOnce(client, key, opts...)).Unary
}

// NewOnce is [Once] as a value, with methods for an operator. It returns an error instead of panicking.
func NewOnce(client *core.Client, key KeyFunc, opts ...Option) (*Guard, error) {
	g, err := rpc.NewOnce("grpclock.Once", client, key, opts)
	if err != nil {
		return nil, err
	}
	return &Guard{g}, nil
}

// Idempotent returns an interceptor that answers a call as it has answered an earlier one with the same key: by default the metadata
// "idempotency-key", see [WithKey]. The client's retry gets the first response, and the handler runs once. The scope identifies the
// user of the key, for instance [ByContext] with the logged-in user: no call reaches another user's response. [Unscoped] is for
// services all of whose clients are one.
//
// A missing or malformed key gets INVALID_ARGUMENT, and so does the key of another call. While the first call is running, others get
// ABORTED, unless [core.WithWait] lets them wait for its response. Idempotent panics if an argument is nil or an option is invalid:
// [NewIdempotent] returns an error instead.
//
// Requests are compared by their fields, whatever language or build has sent them. Fields that this process does not know are left
// out. While instances with and without a new field run side by side, a retry may be refused as another call.
func Idempotent(client *core.Client, scope KeyFunc, opts ...Option) grpc.UnaryServerInterceptor {
	return guards.Must(NewIdempotent(client, scope, opts...)).Unary
}

// NewIdempotent is [Idempotent] as a value, with methods for an operator. It returns an error instead of panicking.
func NewIdempotent(client *core.Client, scope KeyFunc, opts ...Option) (*Guard, error) {
	g, err := rpc.NewIdempotent("grpclock.Idempotent", client, scope, opts)
	if err != nil {
		return nil, err
	}
	return &Guard{g}, nil
}

// Guard is a guard of [NewOnce] or [NewIdempotent] as a value. Unary is the interceptor. The other methods are for operators.
type Guard struct{ guard *rpc.Guard }

// Unary is the interceptor: grpc.UnaryInterceptor(guard.Unary).
func (g *Guard) Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if !g.guard.Exclusive() && rpc.NoSideEffects(info.FullMethod) {
		return handler(ctx, req)
	}
	c := callOf(ctx, info.FullMethod, false)
	c.Message, _ = req.(proto.Message)
	var resp any
	var failure error
	replay, refusal := g.guard.Do(ctx, c, func(ctx context.Context) *rpc.Answer {
		sent := observe(ctx)
		resp, failure = handler(sent.context(), req)
		a := &rpc.Answer{Message: resp, Status: statusOf(failure), Err: failure}
		a.Header, a.Trailer = sent.metadata()
		return a
	})
	switch {
	case refusal != nil:
		return nil, refusedError{refusal}
	case replay != nil:
		return again(ctx, replay)
	}
	return resp, failure
}

// again sends a recorded response.
func again(ctx context.Context, a *rpc.Answer) (any, error) {
	header := metadata.MD(a.Header)
	header.Set(rpc.Replayed, "true")
	if err := grpc.SetHeader(ctx, header); err != nil {
		return nil, err
	}
	if err := grpc.SetTrailer(ctx, metadata.MD(a.Trailer)); err != nil {
		return nil, err
	}
	if a.Status != nil {
		return nil, status.ErrorProto(a.Status)
	}
	return a.Message, nil
}

// Peek reads the record of a call, for an operator. The parts are the texts of the key: one for each key function of the guard, in
// their order, for [Once] the full method before them, and for [Idempotent] the client's key at the end. The Value of the record is the response as text.
func (g *Guard) Peek(ctx context.Context, parts ...string) (core.Record, error) {
	return g.guard.Peek(ctx, parts...)
}

// Resolve records that a call whose outcome was unknown has taken effect. Its retries get the response, or ALREADY_EXISTS if it is
// nil. seen is what [Guard.Peek] returned: if the record has changed since then, the error is [core.ErrChanged].
func (g *Guard) Resolve(ctx context.Context, seen core.Record, response proto.Message) error {
	return g.guard.Resolve(ctx, seen, response)
}

// Forget deletes the record that [Guard.Peek] returned, so that the next call of its key runs. The error is [core.ErrChanged] if the
// record has changed since then, and [ErrNoRecord] if there is none.
func (g *Guard) Forget(ctx context.Context, seen core.Record) error { return g.guard.Forget(ctx, seen) }

// refusedError is a refusal as an error with a status.
type refusedError struct{ *rpc.Refusal }

func (e refusedError) GRPCStatus() *status.Status { return status.FromProto(e.Status) }
func (e refusedError) Unwrap() error              { return e.Refusal }

// statusOf returns the status that the server makes of a handler's error.
func statusOf(err error) *spb.Status {
	if err == nil {
		return nil
	}
	s, ok := status.FromError(err)
	if !ok {
		s = status.FromContextError(err)
	}
	return s.Proto()
}

func callOf(ctx context.Context, method string, stream bool) *rpc.Call {
	c := rpc.NewCall(ctx, method, stream)
	c.Metadata = func(name string) []string { return metadata.ValueFromIncomingContext(ctx, name) }
	c.TLS = func() *tls.ConnectionState {
		p, _ := peer.FromContext(ctx)
		if p == nil {
			return nil
		}
		info, ok := p.AuthInfo.(credentials.TLSInfo)
		if !ok {
			return nil
		}
		return &info.State
	}
	return c
}

// For applies an interceptor to the calls of a service, "/pay.v1.Payments/", or of one method,
// "/pay.v1.Payments/Charge". It panics if calls would pass the interceptor in silence: if the protobuf files that are
// linked into the program have no method with that prefix, or one that is a stream. [Check] asks the server itself.
func For(prefix string, interceptor grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor {
	mustHave(prefix, false, interceptor == nil)
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if rpc.Matches(prefix, info.FullMethod) {
			return interceptor(ctx, req, info, handler)
		}
		return handler(ctx, req)
	}
}

// ForStream is [For] for streams. It panics if a method with the prefix is no stream.
func ForStream(prefix string, interceptor grpc.StreamServerInterceptor) grpc.StreamServerInterceptor {
	mustHave(prefix, true, interceptor == nil)
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		if rpc.Matches(prefix, info.FullMethod) {
			return interceptor(srv, stream, info, handler)
		}
		return handler(srv, stream)
	}
}

func mustHave(prefix string, streams, none bool) {
	if none {
		panic("holdfast: prefix " + prefix + ": the interceptor is nil")
	}
	if err := rpc.CheckPrefix(prefix, streams, rpc.Linked(prefix)); err != nil {
		panic(err)
	}
}

// Check returns an error if a prefix of [For] has no method on the server, or both streams and other methods. Call it when all
// services are registered.
func Check(server interface {
	GetServiceInfo() map[string]grpc.ServiceInfo
}, prefixes ...string,
) error {
	var methods []rpc.Method
	for service, info := range server.GetServiceInfo() {
		for _, m := range info.Methods {
			methods = append(methods, rpc.Method{Name: "/" + service + "/" + m.Name, Stream: m.IsClientStream || m.IsServerStream})
		}
	}
	slices.SortFunc(methods, func(a, b rpc.Method) int { return strings.Compare(a.Name, b.Name) })
	for _, prefix := range prefixes {
		streams := slices.ContainsFunc(methods, func(m rpc.Method) bool { return m.Stream && rpc.Matches(prefix, m.Name) })
		if err := rpc.CheckPrefix(prefix, streams, methods); err != nil {
			return err
		}
	}
	return nil
}
