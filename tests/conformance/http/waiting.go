package httpconformance

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/httpkit"
)

var waitingTests = tests{
	"WaiterGetsTheReplay":            testWaiterReplay,
	"WaiterOnAnotherInstanceToo":     testWaiterElsewhere,
	"WaiterRunsAfterFailure":         testWaiterRuns,
	"WaiterOfAnotherRequest":         testWaiterMismatch,
	"WaitersAreBounded":              testWaitersBounded,
	"WaitEndsBeforeTheServerStops":   testWriteTimeout,
	"WaitEndsWithTheContext":         testWaitDeadline,
	"ShortWaitLeavesRedisItsTime":    testShortWait,
	"ExclusiveRequestWaitsForItsOwn": testExclusiveWaits,
}

// watched returns a client that tells of each request that begins to wait.
func (s *suite) watched(t testing.TB, opts ...core.Option) (*core.Client, <-chan string) {
	waiting := make(chan string, 100)
	locks := newLocks(t, s.redis.Client(), append(opts, core.WithHooks(core.Hooks{
		Wait: func(_ context.Context, w core.Wait) { waiting <- w.Name },
	}))...)
	return locks, waiting
}

func testWaiterReplay(t *testing.T, s *suite) {
	locks, waiting := s.watched(t)
	stage := newStage(t)
	site := s.mount(t, stage, must(t)(s.Idempotent(locks, ByUser,
		httplock.WithAskTimeout(patience), core.WithWait(patience))))
	awaitReplay(t, stage, waiting, site, site)
}

func testWaiterElsewhere(t *testing.T, s *suite) {
	locks, waiting := s.watched(t)
	stage := newStage(t)
	site := s.mount(t, stage, s.idempotent(t))
	other := s.mount(t, stage, must(t)(s.Idempotent(locks, ByUser,
		httplock.WithAskTimeout(patience), core.WithWait(patience))))
	awaitReplay(t, stage, waiting, site, other)
}

func awaitReplay(t *testing.T, stage *stage, waiting <-chan string, one, other *site) {
	t.Helper()
	r := request{user: t.Name(), key: "k", body: "order"}
	first := one.aside(t.Context(), r)
	receive(t, stage.entered, "the run")
	second := other.aside(t.Context(), r)
	receive(t, waiting, "the second request to wait")
	close(stage.leave)
	receive(t, first, "the first answer").fresh(t, http.StatusCreated, "done")
	receive(t, second, "the second answer").replayed(t, http.StatusCreated, "done")
	if len(stage.entered) != 0 {
		t.Error("the second request ran as well")
	}
}

// testWaiterRuns: a waiter takes the turn of a run that has failed.
func testWaiterRuns(t *testing.T, s *suite) {
	locks, waiting := s.watched(t)
	entered, leave := make(chan int, 2), make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		attempt := httpkit.Attempt(r.Context())
		entered <- attempt
		await(t, leave)
		w.WriteHeader(map[int]int{1: 500, 2: 201}[attempt])
	})
	site := s.mount(t, h, must(t)(s.Idempotent(locks, ByUser,
		httplock.WithAskTimeout(patience), core.WithWait(patience))))
	r := request{user: "waiter-runs", key: "k"}
	first := site.aside(t.Context(), r)
	receive(t, entered, "the first run")
	second := site.aside(t.Context(), r)
	receive(t, waiting, "the second request to wait")
	close(leave)
	receive(t, first, "the first answer").want(t, http.StatusInternalServerError)
	receive(t, second, "the second answer").fresh(t, http.StatusCreated, "")
	if got := receive(t, entered, "the second run"); got != 2 {
		t.Errorf("attempt %d, want 2", got)
	}
}

// testWaiterMismatch: another request with the key of one that runs has nothing to wait for.
func testWaiterMismatch(t *testing.T, s *suite) {
	stage := newStage(t)
	site := s.mount(t, stage, s.idempotent(t, core.WithWait(patience)))
	first := site.aside(t.Context(), request{user: "waiter-mismatch", key: "k", body: "a"})
	receive(t, stage.entered, "the run")
	second := site.do(request{user: "waiter-mismatch", key: "k", body: "b"})
	second.refused(t, http.StatusUnprocessableEntity, httplock.CodeKeyReused)
	close(stage.leave)
	receive(t, first, "the first answer").want(t, http.StatusCreated)
}

// testWaitersBounded: one more than may wait is refused at once, of one key and of all.
func testWaitersBounded(t *testing.T, s *suite) {
	locks, waiting := s.watched(t)
	stage := newStage(t)
	limit := httplock.WithWaiters(2, 3)
	site := s.mount(t, stage, must(t)(s.Idempotent(locks, ByUser,
		httplock.WithAskTimeout(patience), core.WithWait(patience), limit)))
	one, other := request{user: "bounded-1", key: "k"}, request{user: "bounded-2", key: "k"}
	var answers []<-chan answer
	for _, r := range []request{one, other} {
		answers = append(answers, site.aside(t.Context(), r))
		receive(t, stage.entered, "a run")
	}
	for _, r := range []request{one, one} {
		answers = append(answers, site.aside(t.Context(), r))
		receive(t, waiting, "a waiter")
	}
	site.do(one).refused(t, http.StatusConflict, httplock.CodeRequestInProgress)
	answers = append(answers, site.aside(t.Context(), other))
	receive(t, waiting, "a waiter for the other key")
	site.do(other).refused(t, http.StatusConflict, httplock.CodeRequestInProgress)
	close(stage.leave)
	for _, a := range answers {
		receive(t, a, "an answer").want(t, http.StatusCreated)
	}
	if n := len(stage.entered); n != 0 {
		t.Errorf("%d waiters ran", n)
	}
	site.do(one).replayed(t, http.StatusCreated, "done") // all places are free again
}

// testWriteTimeout: an answer that comes after WriteTimeout never arrives, so no request waits until then.
func testWriteTimeout(t *testing.T, s *suite) {
	stage, watch := newStage(t), newWatch()
	h := s.Handler(Route{
		Path: "/orders/{id}", Handler: stage,
		Guards: []Guard{s.told(t, watch).once(t, core.WithWait(time.Hour))},
	})
	site := s.serve(t, h, func(srv *httptest.Server) { srv.Config.WriteTimeout = 2 * time.Second })
	r := request{user: "write-timeout"}
	first := site.aside(t.Context(), r)
	receive(t, stage.entered, "the run")
	testkit.Eventually(t, patience, "a wait whose end is in time", func() bool {
		site.aside(t.Context(), r)
		c := receive(t, watch.refused, "the refusal")
		if c.Code == httplock.CodeLockUnavailable {
			return false // Redis did not reply in what is left of the wait, on a busy machine
		}
		if c.Code != httplock.CodeRequestInProgress {
			t.Fatalf("code %q, want request-in-progress", c.Code)
		}
		return true
	})
	close(stage.leave)
	receive(t, first, "the end") // too late for an answer
}

// testShortWait: a request whose key is free runs, although Redis takes longer to answer than the request may wait.
func testShortWait(t *testing.T, s *suite) {
	const wait = time.Millisecond
	for name, build := range s.builders() {
		relay := s.redis.Relay()
		locks := newLocks(t, relay.Client())
		site := s.mount(t, &counter{}, must(t)(build(locks, ByUser, unhurried(nil, core.WithWait(wait))...)))
		relay.Hold(testkit.ToClient)
		first := site.aside(t.Context(), request{user: "short-wait-" + name, key: "k"})
		testkit.Eventually(t, patience, "a reply", func() bool { return relay.Held(testkit.ToClient) > 0 })
		select {
		case a := <-first:
			t.Errorf("%s: status %d, error %v before Redis has answered", name, a.status, a.err)
		case <-time.After(20 * wait):
			relay.Heal()
			receive(t, first, "the answer").want(t, http.StatusCreated)
		}
	}
}

// testWaitDeadline: a timeout around the guard ends the wait, and the client is told why.
func testWaitDeadline(t *testing.T, s *suite) {
	stage := newStage(t)
	h := s.Handler(Route{
		Path: "/orders/{id}", Handler: stage, Guards: []Guard{s.once(t, core.WithWait(time.Hour))},
	})
	site := s.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Hurry") != "" {
			ctx, cancel := context.WithTimeout(r.Context(), 50*time.Millisecond)
			defer cancel()
			r = r.WithContext(ctx)
		}
		h.ServeHTTP(w, r)
	}))
	first := site.aside(t.Context(), request{user: "wait-deadline"})
	receive(t, stage.entered, "the run")
	a := site.do(request{user: "wait-deadline", header: http.Header{"X-Hurry": {"1"}}})
	a.want(t, map[bool]int{true: a.status, false: 409}[a.status == 503]) // of a machine too busy to ask in that time
	close(stage.leave)
	receive(t, first, "the first answer").want(t, http.StatusCreated)
	if len(stage.entered) != 0 {
		t.Error("the second request ran as well")
	}
}

func testExclusiveWaits(t *testing.T, s *suite) {
	locks, waiting := s.watched(t)
	stage := newStage(t)
	site := s.mount(t, stage, must(t)(s.Exclusive(locks.Mutex, ByUser,
		httplock.WithAskTimeout(patience), core.WithWait(patience))))
	r := request{user: "exclusive-waits"}
	first := site.aside(t.Context(), r)
	receive(t, stage.entered, "the first run")
	second := site.aside(t.Context(), r)
	receive(t, waiting, "the second request to wait")
	if len(stage.entered) != 0 {
		t.Error("both ran at the same time")
	}
	close(stage.leave)
	receive(t, first, "the first answer").want(t, http.StatusCreated)
	receive(t, second, "the second answer").want(t, http.StatusCreated)
}
