package httplock

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/middleware"
)

// Exclusive returns a middleware that lets no two requests of one key run at the same time. The strategy makes
// the lock, locks.Mutex for instance; key tells what must not run at the same time. Panics if one of them is
// nil or an option is invalid: [NewExclusive] returns that as an error.
//
// A handler guarded twice with the same key runs: the inner guard enters the lock of the outer one.
func Exclusive(strategy core.Strategy, key KeyFunc, opts ...Option) func(http.Handler) http.Handler {
	guard, err := NewExclusive(strategy, key, opts...)
	if err != nil {
		panic(err)
	}
	return guard
}

// NewExclusive is [Exclusive] for those who get their settings at run time: it returns an error instead of
// panicking.
func NewExclusive(strategy core.Strategy, key KeyFunc, opts ...Option) (func(http.Handler) http.Handler, error) {
	config := newConfig(opts)
	engine, err := middleware.NewExclusive(strategy, config.engine)
	switch {
	case err != nil:
		return nil, err
	case key == nil:
		return nil, errors.New("holdfast: the key function is nil: a guard needs to know what to tell apart")
	case config.skip == nil:
		return nil, errors.New("holdfast: WithSkip: the function is nil")
	case config.refuse == nil:
		return nil, errors.New("holdfast: WithConflictHandler: the handler is nil")
	}
	return func(next http.Handler) http.Handler {
		if next == nil {
			panic("holdfast: the handler to guard is nil")
		}
		return &exclusive{engine: engine, key: key, skip: config.skip, refuse: config.refuse, next: next}
	}, nil
}

// exclusive is the guarded handler.
type exclusive struct {
	engine *middleware.Exclusive
	key    KeyFunc
	skip   func(*http.Request) bool
	refuse ConflictHandler
	next   http.Handler
}

func (e *exclusive) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !e.engine.Guards(r.Method) || e.skip(r) {
		e.next.ServeHTTP(w, r)
		return
	}
	conflict := e.serve(w, r)
	switch {
	case conflict == nil:
	case conflict.Code == middleware.CodeClientGone:
		// For the log. It also keeps net/http from answering 200, which a client that has merely closed its
		// sending side would take for success.
		w.WriteHeader(conflict.Status)
	default:
		e.refuse(w, r, conflict)
	}
}

// serve runs the handler under the lock or returns why not.
func (e *exclusive) serve(w http.ResponseWriter, r *http.Request) *Conflict {
	ctx, answerBy := r.Context(), answerBy(r)
	// A copy, whose body may be replaced and whose form may be parsed to make the key of it.
	keyed := r.WithContext(ctx)
	// net/http removes the files of a form that it finds in its own request only.
	defer func() { r.MultipartForm = keyed.MultipartForm }()
	key, err := e.key(keyed)
	if err != nil {
		return e.engine.Refuse(ctx, err)
	}
	body, err := e.body(keyed)
	if err != nil {
		return e.engine.Refuse(ctx, err)
	}
	return e.engine.Do(ctx, key, answerBy, func(ctx context.Context) {
		guarded := keyed.WithContext(ctx)
		guarded.Body = body
		// That of net/http's own request, where trailers arrive that were not announced.
		guarded.Trailer = r.Trailer
		defer func() { keyed.MultipartForm = guarded.MultipartForm }()
		e.next.ServeHTTP(w, guarded)
	})
}

// body returns the body of r, buffered if that is of use. What is known to be too large is left to the handler
// unread; a client that waits for 100 Continue then sends it only if the lock is granted.
func (e *exclusive) body(r *http.Request) (io.ReadCloser, error) {
	limit := e.engine.BodyLimit()
	switch {
	case r.Body == nil, r.Body == http.NoBody, limit == 0, r.ContentLength > limit:
		return r.Body, nil
	case r.Method == http.MethodConnect: // a tunnel, which both sides use at the same time
		return r.Body, nil
	}
	return middleware.Buffer(r.Context(), r.Body, limit)
}

func answerBy(r *http.Request) time.Time { return middleware.AnswerBy(r.Context()) }
