package connectlock

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net/http"
	"os"

	"connectrpc.com/connect"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/middleware/internal/rpc"
)

// Exclusive returns an interceptor that prevents two calls of one key from running at the same time. The strategy makes
// the lock, for instance locks.Mutex; with locks.Limit(n), at most n calls of a key run at a time. A call waits for the
// one before it for 250 ms unless [core.WithWait] says otherwise, at most until one second before its deadline, and is
// refused with aborted. Streams are refused with internal: see [ExclusiveStream]. Exclusive panics if an argument is
// nil or an option is invalid: [NewExclusive] returns an error instead.
func Exclusive(strategy core.Strategy, key KeyFunc, opts ...Option) connect.Interceptor {
	return guards.Must(NewExclusive(strategy, key, opts...))
}

// NewExclusive is [Exclusive] for settings that are known only at run time: it returns an error instead of panicking.
func NewExclusive(strategy core.Strategy, key KeyFunc, opts ...Option) (connect.Interceptor, error) {
	g, err := rpc.NewExclusive("connectlock.Exclusive", strategy, key, opts)
	if err != nil {
		return nil, err
	}
	return &Guard{guard: g}, nil
}

// ExclusiveStream is [Exclusive] for streams: the lock is held until the handler returns. The key cannot have a field of a message,
// because the guard is asked before there is one. Unary calls are refused with internal.
func ExclusiveStream(strategy core.Strategy, key KeyFunc, opts ...Option) connect.Interceptor {
	return guards.Must(NewExclusiveStream(strategy, key, opts...))
}

// NewExclusiveStream is [ExclusiveStream] for settings that are known only at run time: it returns an error instead of panicking.
func NewExclusiveStream(strategy core.Strategy, key KeyFunc, opts ...Option) (connect.Interceptor, error) {
	g, err := rpc.NewExclusiveStream("connectlock.ExclusiveStream", strategy, key, opts)
	if err != nil {
		return nil, err
	}
	return &Guard{guard: g, streams: true}, nil
}

// Once returns an interceptor that lets a call of each method and key take effect once: for instance one order per user. A second
// call is refused while the first is running (aborted) and after it has succeeded (already_exists), until the record expires. With
// [WithReplay] it gets the recorded response instead. The record lasts for 24 hours unless [core.WithRetention] says otherwise. A
// first call that has failed does not count, see [core.WithFailurePolicy]. Streams are refused with internal. Once panics if an
// argument is nil or an option is invalid: [NewOnce] returns an error instead.
//
// A handler guarded twice with the same key runs: the inner guard lets the run of the outer one pass, whose options apply. Only
// [core.HoldFailures] of either guard counts for both.
func Once(client *core.Client, key KeyFunc, opts ...Option) connect.Interceptor {
	return guards.Must(NewOnce(client, key, opts...))
}

// NewOnce is [Once] as a value, with methods for an operator. It returns an error instead of panicking.
func NewOnce(client *core.Client, key KeyFunc, opts ...Option) (*Guard, error) {
	g, err := rpc.NewOnce("connectlock.Once", client, key, opts)
	if err != nil {
		return nil, err
	}
	return &Guard{guard: g}, nil
}

// Idempotent returns an interceptor that answers a call as it has answered an earlier one with the same key: by default the header
// Idempotency-Key, see [WithKey]. The client's retry gets the first response, and the handler runs once. The scope identifies the
// user of the key, for instance [ByContext] with the logged-in user: no call reaches another user's response. [Unscoped] is for
// services all of whose clients are one.
//
// A missing or malformed key gets invalid_argument, and so does the key of another call. While the first call is
// running, others get aborted, unless [core.WithWait] lets them wait for its response. Streams are refused with
// internal. Idempotent panics if an argument is nil or an option is invalid: [NewIdempotent] returns an error instead.
//
// Requests are compared by their fields, whatever language, build or encoding has sent them. Fields that this process
// does not know are left out. While instances with and without a new field run side by side, a retry may be refused as
// another call.
func Idempotent(client *core.Client, scope KeyFunc, opts ...Option) connect.Interceptor {
	return guards.Must(NewIdempotent(client, scope, opts...))
}

// NewIdempotent is [Idempotent] as a value, with methods for an operator. It returns an error instead of panicking.
func NewIdempotent(client *core.Client, scope KeyFunc, opts ...Option) (*Guard, error) {
	g, err := rpc.NewIdempotent("connectlock.Idempotent", client, scope, opts)
	if err != nil {
		return nil, err
	}
	return &Guard{guard: g}, nil
}

// Guard is a guard as a value. It is a [connect.Interceptor] for handlers: connect.WithInterceptors(guard). A client whose interceptor
// it is gets internal. The other methods are for operators, of a guard of [NewOnce] or [NewIdempotent].
type Guard struct {
	guard   *rpc.Guard
	streams bool // it is for streams, and refuses unary calls
}

var _ connect.Interceptor = (*Guard)(nil)

// WrapUnary implements [connect.Interceptor].
func (g *Guard) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		spec := req.Spec()
		switch {
		case spec.IsClient, g.streams:
			return nil, misplaced(spec, g.streams)
		case !g.guard.Exclusive() && spec.IdempotencyLevel == connect.IdempotencyNoSideEffects:
			return next(ctx, req)
		}
		c := callOf(ctx, spec.Procedure, false, req.Header())
		c.Message, _ = req.Any().(proto.Message)
		var resp connect.AnyResponse
		var failure error
		replay, refusal := g.guard.Do(ctx, c, func(ctx context.Context) *rpc.Answer {
			sent := observe(ctx)
			resp, failure = next(ctx, req)
			return sent.answer(resp, failure)
		})
		switch {
		case refusal != nil:
			return nil, refused(refusal)
		case replay != nil:
			return again(replay)
		}
		return resp, failure
	}
}

// WrapStreamingClient implements [connect.Interceptor].
func (g *Guard) WrapStreamingClient(connect.StreamingClientFunc) connect.StreamingClientFunc {
	panic("holdfast: a guard is for handlers, not for clients")
}

// WrapStreamingHandler implements [connect.Interceptor].
func (g *Guard) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		if !g.streams {
			return misplaced(conn.Spec(), false)
		}
		var failure error
		_, refusal := g.guard.Do(ctx, callOf(ctx, conn.Spec().Procedure, true, conn.RequestHeader()), func(ctx context.Context) *rpc.Answer {
			failure = next(ctx, conn)
			return &rpc.Answer{Message: struct{}{}, Status: statusOf(failure), Err: failure}
		})
		if refusal != nil {
			return refused(refusal)
		}
		return failure
	}
}

// misplaced returns the error for a call of a kind that the guard does not guard: it must not pass in silence.
func misplaced(spec connect.Spec, streams bool) error {
	switch {
	case spec.IsClient:
		return connect.NewError(connect.CodeInternal, errors.New("holdfast: a guard is for handlers, not for clients"))
	case streams:
		return connect.NewError(connect.CodeInternal, errors.New("holdfast: "+spec.Procedure+" is no stream: its guard is for streams"))
	}
	return connect.NewError(connect.CodeInternal, errors.New("holdfast: "+spec.Procedure+" is a stream: its guard is for unary calls"))
}

// Peek reads the record of a call, for an operator. The parts are the texts of the key: one for each key function of the guard, in
// their order, for [Once] the full method before them, and for [Idempotent] the client's key at the end. The Value of the record is the response as text.
func (g *Guard) Peek(ctx context.Context, parts ...string) (core.Record, error) {
	return g.guard.Peek(ctx, parts...)
}

// Resolve records that a call whose outcome was unknown has taken effect. Its retries get the response, or already_exists if it is
// nil. seen is what [Guard.Peek] returned: if the record has changed since then, the error is [core.ErrChanged].
func (g *Guard) Resolve(ctx context.Context, seen core.Record, response proto.Message) error {
	return g.guard.Resolve(ctx, seen, response)
}

// Forget deletes the record that [Guard.Peek] returned, so that the next call of its key runs. The error is [core.ErrChanged] if the
// record has changed since then, and [ErrNoRecord] if there is none.
func (g *Guard) Forget(ctx context.Context, seen core.Record) error { return g.guard.Forget(ctx, seen) }

// For applies an interceptor of this package to the calls of a service, "/pay.v1.Payments/", or of one method,
// "/pay.v1.Payments/Charge", of a handler that has others too. It panics if the protobuf files that are linked into the program have
// no method with that prefix, or one that the interceptor would refuse: a stream, or a unary method for [ExclusiveStream].
func For(prefix string, interceptor connect.Interceptor) connect.Interceptor {
	if interceptor == nil {
		panic("holdfast: prefix " + prefix + ": the interceptor is nil")
	}
	g, ok := interceptor.(*Guard)
	if err := rpc.CheckPrefix(prefix, ok && g.streams, rpc.Linked(prefix)); err != nil {
		panic(err)
	}
	return &prefixed{interceptor, prefix}
}

// prefixed is an interceptor for the procedures of a prefix.
type prefixed struct {
	connect.Interceptor
	prefix string
}

func (p *prefixed) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	guarded := p.Interceptor.WrapUnary(next)
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		if rpc.Matches(p.prefix, req.Spec().Procedure) {
			return guarded(ctx, req)
		}
		return next(ctx, req)
	}
}

func (p *prefixed) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	guarded := p.Interceptor.WrapStreamingHandler(next)
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		if rpc.Matches(p.prefix, conn.Spec().Procedure) {
			return guarded(ctx, conn)
		}
		return next(ctx, conn)
	}
}

type tlsKey struct{}

// WithTLS lets [ByPeer] see the client's certificate, which connect does not hand to interceptors. It wraps the handler of a server:
//
//	mux.Handle(payconnect.NewPaymentsHandler(...))
//	server := &http.Server{Handler: connectlock.WithTLS(mux)}
func WithTLS(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), tlsKey{}, r.TLS)))
	})
}

func callOf(ctx context.Context, procedure string, stream bool, header http.Header) *rpc.Call {
	c := rpc.NewCall(ctx, procedure, stream)
	c.Metadata = header.Values
	c.TLS = func() *tls.ConnectionState {
		state, _ := ctx.Value(tlsKey{}).(*tls.ConnectionState)
		return state
	}
	return c
}

// observed is what a handler sets by its context. What it sets on its response or its error is not in it.
type observed struct {
	info            connect.CallInfo // nil outside of a handler of connect
	header, trailer http.Header      // before the handler
}

func observe(ctx context.Context) (o observed) {
	if info, ok := connect.CallInfoForHandlerContext(ctx); ok {
		o.info, o.header, o.trailer = info, info.ResponseHeader().Clone(), info.ResponseTrailer().Clone()
	}
	return o
}

// answer returns how a handler ended.
func (o observed) answer(resp connect.AnyResponse, err error) *rpc.Answer {
	a := &rpc.Answer{Status: statusOf(err), Err: err}
	header, trailer := http.Header{}, http.Header{}
	if o.info != nil {
		header, trailer = added(o.info.ResponseHeader(), o.header), added(o.info.ResponseTrailer(), o.trailer)
	}
	var coded *connect.Error
	switch {
	case errors.As(err, &coded):
		appendAll(trailer, coded.Meta())
	case err == nil && resp != nil:
		a.Message = resp.Any()
		appendAll(header, resp.Header())
		appendAll(trailer, resp.Trailer())
	}
	a.Header, a.Trailer = header, trailer
	return a
}

// added returns what was appended to a header.
func added(all, before http.Header) http.Header {
	more := http.Header{}
	for name, values := range all {
		if had := min(len(before[name]), len(values)); had < len(values) {
			more[name] = values[had:]
		}
	}
	return more
}

func appendAll(to, from http.Header) {
	for name, values := range from {
		to[name] = append(to[name][:len(to[name]):len(to[name])], values...)
	}
}

// again makes a recorded response.
func again(a *rpc.Answer) (connect.AnyResponse, error) {
	header, trailer := canonical(a.Header), canonical(a.Trailer)
	header.Set(rpc.Replayed, "true")
	if a.Status != nil {
		err := errorOf(a.Status, errors.New(a.Status.GetMessage()))
		appendAll(err.Meta(), header)
		appendAll(err.Meta(), trailer)
		return nil, err
	}
	resp := connect.NewResponse(&emptypb.Empty{})
	maps.Copy(resp.Header(), header)
	maps.Copy(resp.Trailer(), trailer)
	return &replayed{resp, a.Message}, nil
}

// replayed is a response whose message is of a type that is known only at run time.
type replayed struct {
	connect.AnyResponse
	message any
}

func (r *replayed) Any() any { return r.message }

func canonical(header map[string][]string) http.Header {
	h := make(http.Header, len(header)+1)
	for name, values := range header {
		h[http.CanonicalHeaderKey(name)] = values
	}
	return h
}

// refused is a refusal as an error of connect.
func refused(r *rpc.Refusal) error { return errorOf(r.Status, refusal{r}) }

// refusal has the text for the client.
type refusal struct{ *rpc.Refusal }

func (r refusal) Error() string { return r.Status.GetMessage() }
func (r refusal) Unwrap() error { return r.Refusal }

// errorOf makes an error of a status.
func errorOf(s *spb.Status, err error) *connect.Error {
	e := connect.NewError(connect.Code(s.GetCode()), err)
	for _, detail := range s.GetDetails() {
		if d, err := connect.NewErrorDetail(detail); err == nil {
			e.AddDetail(d)
		}
	}
	return e
}

// statusOf returns the status that connect makes of a handler's error.
func statusOf(err error) *spb.Status {
	if err == nil {
		return nil
	}
	var coded *connect.Error
	if errors.As(err, &coded) {
		s := &spb.Status{Code: int32(coded.Code()), Message: coded.Message()}
		for _, d := range coded.Details() {
			s.Details = append(s.Details, &anypb.Any{TypeUrl: "type.googleapis.com/" + d.Type(), Value: d.Bytes()})
		}
		return s
	}
	s := &spb.Status{Code: int32(connect.CodeUnknown), Message: err.Error()}
	switch {
	case errors.Is(err, context.Canceled):
		s.Code = int32(connect.CodeCanceled)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		s.Code = int32(connect.CodeDeadlineExceeded)
	}
	return s
}
