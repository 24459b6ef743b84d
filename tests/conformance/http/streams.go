package httpconformance

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

var streamTests = tests{
	"StreamIsReplayedWhole":         testStreamReplayed,
	"StreamThatStoppedIsNoAnswer":   testStreamStopped,
	"DetachedStreamThatStopped":     testDetachedStreamStopped,
	"LengthTellsThatAStreamIsWhole": testStreamOfKnownLength,
}

// stream is a handler that flushes one event, and stops at its context, as handlers should. Otherwise it sends a second one.
type stream struct {
	length string // the Content-Length, if any
	begun  chan context.Context
	rest   chan struct{} // closed for the second event
	left   chan struct{} // closed when the handler learns that its client has left, but not from its context
}

func newStream() *stream {
	return &stream{begun: make(chan context.Context, 10), rest: make(chan struct{}), left: make(chan struct{})}
}

func (s *stream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.length != "" {
		w.Header().Set("Content-Length", s.length)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, "one\n")
	_ = http.NewResponseController(w).Flush()
	s.begun <- r.Context()
	select {
	case <-s.rest:
		_, _ = io.WriteString(w, "two\n")
	case <-r.Context().Done():
	case <-s.left:
	}
}

func testStreamReplayed(t *testing.T, s *suite) {
	h := newStream()
	close(h.rest)
	site := s.mount(t, h, s.idempotent(t))
	r := request{user: "stream", key: "k"}
	site.do(r).fresh(t, http.StatusOK, "one\ntwo\n")
	site.do(r).replayed(t, http.StatusOK, "one\ntwo\n")
}

// leave has a client leave after the first event.
func (h *stream) leave(t *testing.T, s *suite, site *site, r request) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	first := site.aside(ctx, r)
	running := receive(t, h.begun, "the first event")
	leave()
	receive(t, first, "the end of the client")
	receive(t, running.Done(), "the end of the handler's context")
	awaitState(t, s.locks, idempotentKey(t, r.user, r.key), core.StateCompleted)
}

// testStreamStopped: nothing but the context tells that the rest is missing. No retry gets the part as if it were whole.
func testStreamStopped(t *testing.T, s *suite) {
	h := newStream()
	judged := make(chan httplock.Handled, 10)
	judge := httplock.WithCompletion(func(o httplock.Handled) httplock.Disposition {
		judged <- o
		return httplock.Auto
	})
	site := s.mount(t, h, s.idempotent(t, judge))
	r := request{user: "stream-stopped", key: "k"}
	h.leave(t, s, site, r)
	if o := receive(t, judged, "the judge"); !o.Response.Omitted || len(o.Response.Body) != 0 {
		t.Errorf("the judge saw %+v", o.Response)
	}
	site.do(r).refused(t, http.StatusConflict, httplock.CodeAlreadyCompleted)
}

// testDetachedStreamStopped: a handler whose context is detached stops because net/http's CloseNotify or gin's Stream tells it
// that its client has left. Its context does not tell that.
func testDetachedStreamStopped(t *testing.T, s *suite) {
	h := newStream()
	inner := s.Handler(Route{
		Path: "/orders/{id}", Guards: []Guard{s.idempotent(t, httplock.WithDetachedContext())}, Handler: h,
	})
	requests := make(chan context.Context, 10)
	site := s.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests <- r.Context()
		inner.ServeHTTP(w, r)
	}))
	r := request{user: "stream-detached", key: "k"}
	ctx, leave := context.WithCancel(t.Context())
	first := site.aside(ctx, r)
	receive(t, h.begun, "the first event")
	leave()
	receive(t, first, "the end of the client")
	receive(t, receive(t, requests, "the request").Done(), "the end of the request's context")
	close(h.left)
	awaitState(t, s.locks, idempotentKey(t, r.user, r.key), core.StateCompleted)
	site.do(r).refused(t, http.StatusConflict, httplock.CodeAlreadyCompleted)
}

// testStreamOfKnownLength: all of the announced bytes were written, so the answer is whole. A program around the guard ends the
// context, because a client that has read everything may keep its connection.
func testStreamOfKnownLength(t *testing.T, s *suite) {
	h := newStream()
	h.length = "4"
	inner := s.Handler(Route{Path: "/orders/{id}", Guards: []Guard{s.idempotent(t)}, Handler: h})
	ends := make(chan context.CancelFunc, 10)
	site := s.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, end := context.WithCancel(r.Context())
		defer end()
		ends <- end
		inner.ServeHTTP(w, r.WithContext(ctx))
	}))
	r := request{user: "stream-known", key: "k"}
	first := site.aside(t.Context(), r)
	receive(t, h.begun, "the first event")
	receive(t, ends, "the request")()
	receive(t, first, "the answer").fresh(t, http.StatusOK, "one\n")
	site.do(r).replayed(t, http.StatusOK, "one\n")
}
