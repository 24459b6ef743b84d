package httpconformance

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

var disconnectTests = tests{
	"ClientLeavesMidHandler":    testLeavesMidHandler,
	"ClientLeavesUnreadBody":    testLeavesUnreadBody,
	"ClientLeavesWhileItSends":  testLeavesSending,
	"ClientLeavesWhileItWaits":  testLeavesWaiting,
	"ClientLeavesDetached":      testLeavesDetached,
	"LockIsKeptForTheHandler":   testLeavesExclusive,
	"LockIsNotForThoseWhoLeave": testLeavesExclusiveWaiting,
}

// testLeavesMidHandler: the handler learns of it, its result is recorded all the same, and the retry gets that.
func testLeavesMidHandler(t *testing.T, s *suite) {
	stage := newStage(t)
	site := s.mount(t, stage, s.idempotent(t))
	r := request{user: "leaves-mid", key: "k", body: "order"}
	ctx, leave := context.WithCancel(t.Context())
	first := site.aside(ctx, r)
	running := receive(t, stage.entered, "the run").Context()
	leave()
	receive(t, first, "the client's error")
	receive(t, running.Done(), "the end of the handler's context")
	if cause := context.Cause(running); !errors.Is(cause, context.Canceled) {
		t.Errorf("cause %v, want that the client left", cause)
	}
	// The lease is kept: nobody else may run.
	site.do(r).refused(t, http.StatusConflict, httplock.CodeRequestInProgress)
	close(stage.leave)
	awaitState(t, s.locks, idempotentKey(t, r.user, "k"), core.StateCompleted)
	site.do(r).replayed(t, http.StatusCreated, "done")
	if len(stage.entered) != 0 {
		t.Error("the handler ran again")
	}
}

// testLeavesUnreadBody: over HTTP/1.1 the server does not notice as long as the body is not read. The result is recorded.
func testLeavesUnreadBody(t *testing.T, s *suite) {
	stage := newStage(t)
	site := s.mount(t, stage, s.once(t, httplock.WithReplay()))
	r := request{user: "leaves-unread"}
	ctx, leave := context.WithCancel(t.Context())
	large := r
	large.body = strings.Repeat("x", 300<<10)
	first := site.aside(ctx, large)
	running := receive(t, stage.entered, "the run").Context()
	leave()
	receive(t, first, "the client's error")
	if s.http2 {
		receive(t, running.Done(), "the end of the handler's context")
	}
	close(stage.leave)
	awaitState(t, s.locks, userKey(t, r.user), core.StateCompleted)
	site.do(r).replayed(t, http.StatusCreated, "done")
	if len(stage.entered) != 0 {
		t.Error("the handler ran again")
	}
}

// testLeavesSending: half a request is none.
func testLeavesSending(t *testing.T, s *suite) {
	runs, watch := &counter{}, newWatch()
	told := s.told(t, watch)
	for name, guard := range map[string]Guard{
		"exclusive": told.exclusive(t), "once": told.once(t), "idempotent": told.idempotent(t),
	} {
		reading, site := s.readable(t, runs, guard)
		body, sender := io.Pipe()
		ctx, leave := context.WithCancel(t.Context())
		done := site.aside(ctx, request{user: "leaves-sending", key: "k", source: body})
		_, _ = io.WriteString(sender, "half")
		receive(t, reading, "the body to be read")
		leave()
		_ = sender.CloseWithError(ctx.Err()) // the client waits for what it sends
		receive(t, done, "the client's error")
		c := receive(t, watch.refused, "the refusal")
		// Over HTTP/1.1 the server cannot tell a client that has left from one that has only stopped sending.
		if c.Code != httplock.CodeClientGone && (s.http2 || c.Code != httplock.CodeBodyUnreadable) {
			t.Errorf("%s: code %q, status %d, want client-gone", name, c.Code, c.Status)
		}
	}
	runs.ran(t, 0)
	if len(watch.acquired) != 0 {
		t.Error("a key was claimed for half a request")
	}
}

// readable is mount, and tells when a body is read for the first time.
func (s *suite) readable(t testing.TB, h http.Handler, guards ...Guard) (<-chan struct{}, *site) {
	t.Helper()
	reading := make(chan struct{}, 100)
	inner := s.Handler(Route{Path: "/orders/{id}", Guards: guards, Handler: h})
	return reading, s.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = &signalling{ReadCloser: r.Body, reading: reading}
		inner.ServeHTTP(w, r)
	}))
}

// signalling is a body that tells of its first read.
type signalling struct {
	io.ReadCloser
	reading chan<- struct{}
	told    bool
}

func (s *signalling) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if !s.told {
		s.told = true
		s.reading <- struct{}{}
	}
	return n, err
}

func testLeavesWaiting(t *testing.T, s *suite) {
	stage, watch := newStage(t), newWatch()
	locks, waiting := s.watched(t, watch.hooks())
	site := s.mount(t, stage, must(t)(s.Once(locks, ByUser,
		httplock.WithAskTimeout(patience), core.WithWait(patience))))
	leavesWaiting(t, stage, watch, waiting, site, "leaves-waiting")
	site.do(request{user: "leaves-waiting"}).refused(t, http.StatusConflict, httplock.CodeAlreadyCompleted)
	if len(stage.entered) != 0 {
		t.Error("the handler ran again")
	}
}

func leavesWaiting(
	t *testing.T, stage *stage, watch *watch, waiting <-chan string, site *site, user string,
) {
	t.Helper()
	first := site.aside(t.Context(), request{user: user})
	receive(t, stage.entered, "the run")
	ctx, leave := context.WithCancel(t.Context())
	second := site.aside(ctx, request{user: user})
	receive(t, waiting, "the second request to wait")
	leave()
	receive(t, second, "the client's error")
	if c := receive(t, watch.refused, "the refusal"); c.Code != httplock.CodeClientGone {
		t.Errorf("code %q, want client-gone", c.Code)
	}
	close(stage.leave)
	receive(t, first, "the first answer").want(t, http.StatusCreated)
}

// testLeavesDetached: the handler does not learn of it, and the retry gets its result. With HoldFailures that is the default, because
// an interrupted run would have an unknown outcome.
func testLeavesDetached(t *testing.T, s *suite) {
	for name, option := range map[string]httplock.Option{
		"WithDetachedContext": httplock.WithDetachedContext(),
		"HoldFailures":        core.WithFailurePolicy(core.HoldFailures),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			leavesDetached(t, s, "leaves-detached-"+name, option)
		})
	}
}

func leavesDetached(t *testing.T, s *suite, user string, option httplock.Option) {
	t.Helper()
	stage := newStage(t)
	inner := s.Handler(Route{
		Path: "/orders/{id}", Handler: stage,
		Guards: []Guard{s.idempotent(t, option)},
	})
	outer := make(chan context.Context, 10)
	site := s.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		outer <- r.Context()
		inner.ServeHTTP(w, r)
	}))
	r := request{user: user, key: "k"}
	ctx, leave := context.WithCancel(t.Context())
	first := site.aside(ctx, r)
	running := receive(t, stage.entered, "the run").Context()
	leave()
	receive(t, first, "the client's error")
	receive(t, receive(t, outer, "the request").Done(), "the server to notice")
	if err := running.Err(); err != nil {
		t.Errorf("the handler's context ended: %v", err)
	}
	if _, ok := core.TokenFrom(running); !ok {
		t.Error("no fencing token in the detached context")
	}
	close(stage.leave)
	awaitState(t, s.locks, idempotentKey(t, r.user, "k"), core.StateCompleted)
	site.do(r).replayed(t, http.StatusCreated, "done")
}

func testLeavesExclusive(t *testing.T, s *suite) {
	stage := newStage(t)
	site := s.mount(t, stage, s.exclusive(t, core.WithWait(0)))
	r := request{user: "leaves-exclusive"}
	ctx, leave := context.WithCancel(t.Context())
	first := site.aside(ctx, r)
	running := receive(t, stage.entered, "the run").Context()
	leave()
	receive(t, first, "the client's error")
	receive(t, running.Done(), "the end of the handler's context")
	site.do(r).refused(t, http.StatusConflict, httplock.CodeLockConflict)
	close(stage.leave)
}

func testLeavesExclusiveWaiting(t *testing.T, s *suite) {
	stage, watch := newStage(t), newWatch()
	locks, waiting := s.watched(t, watch.hooks())
	site := s.mount(t, stage, must(t)(s.Exclusive(locks.Mutex, ByUser,
		httplock.WithAskTimeout(patience), core.WithWait(patience))))
	leavesWaiting(t, stage, watch, waiting, site, "leaves-exclusive-waiting")
	site.do(request{user: "leaves-exclusive-waiting"}).want(t, http.StatusCreated)
	if n := len(stage.entered); n != 1 {
		t.Errorf("%d more runs, want only that of the last request", n)
	}
}
