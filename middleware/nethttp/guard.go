package httplock

import (
	"context"
	"errors"
	"net/http"

	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
	"github.com/holdfast-go/holdfast/middleware/internal/request"
	"github.com/holdfast-go/holdfast/middleware/internal/writer"
)

// engine is what all engines have.
type engine interface {
	Guards(method string) bool
	BufferRequest(r *http.Request, key Key) error
	Admit(r *http.Request) (release func())
	Passes(err error) bool
	Refuse(ctx context.Context, label string, err error) *Conflict
}

// guard is what all guarded handlers have in common.
type guard struct {
	engine engine
	key    KeyFunc
	refuse RefusalHandler
	next   http.Handler
}

// newGuard fails if the key function is nil or an option is invalid.
func newGuard(e engine, key KeyFunc, config config) (guard, error) {
	if key == nil {
		return guard{}, errors.New("holdfast: the key function is nil: a guard needs a key")
	}
	return guard{engine: e, key: key, refuse: config.refuse}, config.check()
}

// before returns the guard in front of a handler.
func (g guard) before(next http.Handler) guard {
	if next == nil {
		panic("holdfast: the handler to guard is nil")
	}
	g.next = next
	return g
}

// visit is a request at a guard.
type visit struct {
	w     http.ResponseWriter
	outer *http.Request // as it came
	inner *http.Request // a copy, whose body may be replaced and whose form may be parsed
	key   Key
}

// Guards reports whether requests of that method are guarded.
func (g guard) Guards(method string) bool { return g.engine.Guards(method) }

// serve lets a request pass, has it run under the guard, or refuses it.
func (g guard) serve(w http.ResponseWriter, r *http.Request, run func(*visit) *Conflict) {
	if !g.engine.Guards(r.Method) {
		g.next.ServeHTTP(w, r)
		return
	}
	v := &visit{w: w, outer: r, inner: r.WithContext(r.Context())}
	defer func() { request.GiveBack(r, v.inner) }()
	defer g.engine.Admit(v.inner)()
	var err error
	if v.key, err = g.key(v.inner); err == nil {
		err = g.engine.BufferRequest(v.inner, v.key)
	}
	host, hosted := writer.Behind(w).(writer.Host)
	var conflict *Conflict
	switch {
	case hosted && host.Answered():
		return
	case err == nil:
		conflict = run(v)
	case g.engine.Passes(err):
		g.handle(r.Context(), w, v)
	default:
		conflict = g.engine.Refuse(r.Context(), httpguard.Label(r.Method, r.Pattern), err)
	}
	if hosted && conflict != nil {
		host.Refused(conflict)
	}
	switch {
	case conflict == nil:
	case conflict.Code == httpguard.CodeClientGone:
		// For the log. It also keeps net/http from answering 200, which a client that has merely closed its
		// sending side would take for success.
		w.WriteHeader(conflict.Status)
		httpguard.RefusalSent(r.Context(), conflict.Status)
	default:
		g.reject(w, r, conflict)
	}
}

// reject has a request answered that was refused, and tells the runs of the guards around this one how. If the handler of
// refusals writes nothing, net/http would answer 200, as if the request had run.
func (g guard) reject(w http.ResponseWriter, r *http.Request, conflict *Conflict) {
	watched := watch(w)
	g.refuse(watched.exposed(), r, conflict)
	if !watched.wrote() {
		Refuse(watched, r, conflict)
	}
	httpguard.RefusalSent(r.Context(), watched.status)
}

// within returns the request for the handler.
func (v *visit) within(ctx context.Context) *http.Request {
	r := v.inner.WithContext(ctx)
	r.Trailer = v.outer.Trailer // where net/http puts trailers that were not announced
	return r
}

// handle runs the handler with that context and writer.
func (g guard) handle(ctx context.Context, w http.ResponseWriter, v *visit) {
	r := v.within(ctx)
	defer func() { request.GiveBack(v.inner, r) }()
	g.next.ServeHTTP(w, r)
}
