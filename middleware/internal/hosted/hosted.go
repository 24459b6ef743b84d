// Package hosted runs the guards of package httplock in frameworks on net/http whose handlers take a context of the framework's, as
// as gin and Echo do. What happens to a request is httplock's; this package gives key functions what the framework
// knows of the request, and hands the error of a handler on.
package hosted

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/middleware/internal/request"
	"github.com/holdfast-go/holdfast/middleware/internal/writer"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// Framework is what an adapter knows of its framework, whose context is C. Frameworks use their contexts again, so nothing
// here keeps one when its request has ended.
type Framework[C any] struct {
	// Request and SetRequest are the request of a context.
	Request    func(c C) *http.Request
	SetRequest func(c C, r *http.Request)
	// Writer is the writer of a context, or what is below it, with the methods that the guard's writer is to have.
	Writer func(c C) http.ResponseWriter
	// Pattern is the matched route in the form of [http.ServeMux], without a method; empty if there is none.
	Pattern func(c C) string
	// PathValues calls set with each parameter of the route.
	PathValues func(c C, set func(name, value string))
	// Prepare changes the copy of the request that the guard gets; nil changes nothing.
	Prepare func(c C, r *http.Request)
	// Decoded is true if the router matches decoded paths.
	Decoded bool
	// TooLarge reports whether an error of a body is the framework's for one above a limit; nil if the framework has none.
	TooLarge func(err error) bool
	// Value is the value that the context has at that key, nil if it has none.
	Value func(c C, key any) any
	// Serve calls next with that writer as the context's, and has the framework answer the error that next returns, unless
	// something was written. In the end the context has its own request and writer again. Serve returns the error, and
	// whether there was one that nothing has answered. A front of the framework's own is at hand.
	Serve func(c C, w http.ResponseWriter, front writer.Full, next func(C) error) (err error, unanswered bool)
	// Front returns what stands between the guard and the writer of the context: nil is a [writer.Forward].
	Front func(c C) writer.Full
	// Unguarded calls next for a request whose method is not guarded; nil is next itself.
	Unguarded func(c C) error
	// Stop is called if the guard has answered in place of next; nil does nothing.
	Stop func(c C)
}

type visitKey[C any] struct{}

// visit is a request at a guard, and the context of the copy that the guard gets.
type visit[C any] struct {
	Values[C]
	decoded bool             // see [Framework]
	large   func(error) bool // TooLarge of it

	c      C
	writer writer.Full
	outer  *http.Request
	ran    bool
	err    error // of the handler
}

// front stands between the guard and the framework's writer, with the same methods. It does not unwrap: what the framework's writer
// is does not matter to the guard.
type front struct{ writer.Forward }

// Middleware returns next behind a guard.
func (f Framework[C]) Middleware(guard func(http.Handler) http.Handler, next func(C) error) func(C) error {
	guarded := guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := visitOf[C](r)
		v.err = f.serve(v, w, r, next)
	}))
	guards := guarded.(interface{ Guards(method string) bool })
	return func(c C) error {
		outer, w := f.Request(c), f.Writer(c)
		if !guards.Guards(outer.Method) {
			if f.Unguarded != nil {
				return f.Unguarded(c)
			}
			return next(c)
		}
		v := &visit[C]{Values: Values[C]{Context: outer.Context(), Of: f.Value}, decoded: f.Decoded, large: f.TooLarge, c: c, outer: outer}
		if f.Front != nil {
			v.writer = f.Front(c)
		} else {
			v.writer = &front{writer.Forward{ResponseWriter: w}}
		}
		r := request.Copy(outer, v)
		pattern := request.MethodPattern(outer.Method, f.Pattern(c))
		r.Pattern = pattern
		f.PathValues(c, r.SetPathValue)
		if f.Prepare != nil {
			f.Prepare(c, r)
		}
		defer func() {
			if r.Pattern == pattern { // and not the pattern of a mux behind the guard
				r.Pattern = ""
			}
			request.GiveBack(outer, r)
			v.c, v.outer = *new(C), nil
		}()
		guarded.ServeHTTP(writer.Expose(v.writer, w), r)
		if !v.ran && f.Stop != nil {
			f.Stop(c)
		}
		return v.err
	}
}

func (v *visit[C]) Value(key any) any {
	switch key {
	case visitKey[C]{}:
		return v
	case request.DecodedPathsKey{}:
		return v.decoded
	case request.TooLargeKey{}:
		return v.large
	}
	return v.Values.Value(key)
}

func visitOf[C any](r *http.Request) *visit[C] {
	v, _ := r.Context().Value(visitKey[C]{}).(*visit[C])
	return v
}

// serve calls what is behind the guard. A request that the guard lets pass keeps the writer of its context, and its error is for the
// framework, or for the guard around this one, to answer.
func (f Framework[C]) serve(v *visit[C], w http.ResponseWriter, r *http.Request, next func(C) error) error {
	v.ran = true
	// What is behind the guard gets the request as it is without the guard, with what that has read of it.
	inner := v.outer.WithContext(r.Context())
	inner.Body, inner.ContentLength = r.Body, r.ContentLength
	inner.Form, inner.PostForm, inner.MultipartForm = r.Form, r.PostForm, r.MultipartForm
	f.SetRequest(v.c, inner)
	defer func() {
		request.GiveBack(r, f.Request(v.c)) // a middleware behind the guard may have put another copy in its place
		f.SetRequest(v.c, v.outer)
	}()
	if writer.Behind(w) == v.writer {
		return next(v.c)
	}
	err, unanswered := f.Serve(v.c, w, v.writer, next)
	if unanswered {
		request.HandlerFailed(r.Context())
	}
	return err
}

// Refusal makes a handler of refusals of one that takes the framework's context. An error that it returns is answered and handed
// on as one of a guarded handler.
func (f Framework[C]) Refusal(handler func(c C, conflict *httplock.Conflict) error) httplock.RefusalHandler {
	if handler == nil {
		return nil
	}
	return func(w http.ResponseWriter, r *http.Request, conflict *httplock.Conflict) {
		v := visitOf[C](r)
		if v == nil { // a guard of net/http
			httplock.Refuse(w, r, conflict)
			return
		}
		v.err, _ = f.Serve(v.c, w, v.writer, func(c C) error { return handler(c, conflict) })
	}
}

// Visitor returns the context of the framework that a guard of the framework answers for, and what stands between the two; false
// for the request of another guard.
func Visitor[C any](r *http.Request) (c C, front writer.Full, found bool) {
	v := visitOf[C](r)
	if v == nil {
		return c, nil, false
	}
	return v.c, v.writer, true
}

// Values is the context of a request, which has the values of the framework's context too while a key function runs.
type Values[C any] struct {
	context.Context
	Of  func(c C, key any) any // the value at a key, nil if there is none
	now atomic.Pointer[C]      // nil unless a key function runs
}

type contextKey[C any] struct{}

// Value implements [context.Context].
func (v *Values[C]) Value(key any) any {
	if key == (contextKey[C]{}) {
		return v
	}
	if c := v.now.Load(); c != nil {
		if value := v.Of(*c, key); value != nil {
			return value
		}
	}
	return v.Context.Value(key)
}

// During calls a key function for a request with this context.
func (v *Values[C]) During(c C, key httplock.KeyFunc, r *http.Request) (httplock.Key, error) {
	v.now.Store(&c)
	defer v.now.Store(nil)
	return key(r)
}

// Context returns the framework's context of the request that a guard hands to a key function, and the zero value for any
// other request and once the key function has returned.
func Context[C any](r *http.Request) (c C) {
	if v, ok := r.Context().Value(contextKey[C]{}).(*Values[C]); ok {
		if now := v.now.Load(); now != nil {
			return *now
		}
	}
	return c
}

// errUnknownPath is for paths without a route. A client causes it, so the guard must not log it as a mistake of the service.
var errUnknownPath = httplock.KeyError(httplock.ErrKeyInvalid, "no route has this path and method")

// Key returns the key function for the guard: it calls key while the context of the request has the framework's values, see [Values].
func (f Framework[C]) Key(key httplock.KeyFunc) httplock.KeyFunc {
	if key == nil {
		return nil // which the guard refuses
	}
	return func(r *http.Request) (httplock.Key, error) {
		v := visitOf[C](r)
		if v == nil { // an operator's texts, in place of a request
			return key(r)
		}
		f.SetRequest(v.c, r) // so that a function which asks the context for the body takes it from the same request
		defer f.SetRequest(v.c, v.outer)
		made, err := v.During(v.c, key, r)
		if r.Pattern == "" && errors.Is(err, httplock.ErrNoRoute) {
			err = errUnknownPath
		}
		return made, err
	}
}

// ByClientIP is httplock's, with the address that the framework finds.
func ByClientIP[C comparable](addressOf func(c C) string, name string) httplock.KeyFunc {
	return httplock.ByClientIP(func(r *http.Request) (netip.Addr, error) {
		c := Context[C](r)
		if c == *new(C) {
			return netip.Addr{}, errors.New("holdfast: " + name + " is for guards of its own package")
		}
		// What is no address, and may be text of the client's, becomes the zero Addr, which is no client.
		addr, _ := netip.ParseAddr(addressOf(c))
		return addr, nil
	})
}
