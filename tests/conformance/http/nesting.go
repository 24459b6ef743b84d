package httpconformance

import (
	"context"
	"net/http"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

var nestingTests = tests{
	"GuardsHaveTheirOwnOptions":  testTwoGuards,
	"GuardedTwiceRuns":           testGuardedTwice,
	"LockInsideIdempotent":       testLockInside,
	"WordReachesThroughALock":    testWordThroughLock,
	"TwoRecordsOneInTheOther":    testTwoRecords,
	"PassesOthersWhileItHolds":   testNestedRefusal,
	"OnceInsideItsOwnLockHasRun": testOnceInsideLock,
	"ReplayInsideIsAnAnswer":     testReplayInside,
}

// testTwoGuards: nothing of one guard's options is in the other's.
func testTwoGuards(t *testing.T, s *suite) {
	runs := &counter{}
	first, other := newWatch(), newWatch()
	site := s.serve(t, s.Handler(
		Route{Path: "/a/{id}", Handler: runs, Guards: []Guard{s.told(t, first).idempotent(t, httplock.WithKeyHeader("X-Key"),
			httplock.WithKeySecret([]byte("sixteen bytes or more")))}},
		Route{Path: "/b/{id}", Handler: runs, Guards: []Guard{s.told(t, other).idempotent(t)}},
	))
	a := request{user: "two", path: "/a/1", header: http.Header{"X-Key": {`"k"`}}}
	b := request{user: "two", path: "/b/1", key: "k"}
	site.do(a).fresh(t, http.StatusCreated, "1")
	site.do(b).fresh(t, http.StatusCreated, "2") // the secret makes it another key
	site.do(a).replayed(t, http.StatusCreated, "1")
	site.do(b).replayed(t, http.StatusCreated, "2")
	a.header = nil
	site.do(a).refused(t, http.StatusBadRequest, httplock.CodeKeyRequired)
	b.key = ""
	site.do(b).refused(t, http.StatusBadRequest, httplock.CodeKeyRequired)
	for name, w := range map[string]*watch{"a": first, "b": other} {
		if len(w.acquired) != 1 || len(w.replayed) != 1 || len(w.refused) != 1 || len(w.finished) != 1 {
			t.Errorf("%s: hooks told of %d runs, %d replays, %d refusals, %d ends, want one each",
				name, len(w.acquired), len(w.replayed), len(w.refused), len(w.finished))
		}
	}
}

// testGuardedTwice: a request does not wait for itself.
func testGuardedTwice(t *testing.T, s *suite) {
	for name, guards := range map[string][]Guard{
		"one guard twice":  func() []Guard { g := s.idempotent(t); return []Guard{g, g} }(),
		"two guards alike": {s.idempotent(t), s.idempotent(t)},
		"with another between": func() []Guard {
			g := s.idempotent(t)
			return []Guard{g, s.exclusive(t), s.once(t), g}
		}(),
		"a lock twice": {s.idempotent(t), s.exclusive(t), s.exclusive(t)},
	} {
		runs := &counter{}
		site := s.mount(t, runs, guards...)
		r := request{user: "twice-" + name, key: "k", body: "order"}
		site.do(r).fresh(t, http.StatusCreated, "1")
		site.do(r).replayed(t, http.StatusCreated, "1")
		runs.ran(t, 1)
	}
}

// testLockInside: the replay does not ask for the lock, and a refusal by the lock is not recorded.
func testLockInside(t *testing.T, s *suite) {
	stage := newStage(t)
	lock := s.exclusive(t, core.WithWait(0))
	site := s.mount(t, stage, s.idempotent(t), lock)
	first := site.aside(t.Context(), request{user: "inside", key: "a"})
	receive(t, stage.entered, "the first run")
	second := request{user: "inside", key: "b"}
	site.do(second).refused(t, http.StatusConflict, httplock.CodeLockConflict)
	close(stage.leave)
	receive(t, first, "the first answer").fresh(t, http.StatusCreated, "done")
	site.do(second).fresh(t, http.StatusCreated, "done")
	site.do(second).replayed(t, http.StatusCreated, "done")
	site.do(request{user: "inside", key: "a"}).replayed(t, http.StatusCreated, "done")
}

func testWordThroughLock(t *testing.T, s *suite) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := core.Complete(r.Context()); err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusInternalServerError)
	})
	site := s.mount(t, h, s.once(t), s.exclusive(t))
	r := request{user: "through"}
	site.do(r).want(t, http.StatusInternalServerError)
	site.do(r).refused(t, http.StatusConflict, httplock.CodeAlreadyCompleted)
}

// testTwoRecords: one order per user, and its answer for whoever repeats the request.
func testTwoRecords(t *testing.T, s *suite) {
	runs := &counter{}
	site := s.mount(t, runs, s.idempotent(t), s.once(t))
	r := request{user: "records", key: "a"}
	site.do(r).fresh(t, http.StatusCreated, "1")
	site.do(r).replayed(t, http.StatusCreated, "1")
	r.key = "b"
	site.do(r).refused(t, http.StatusConflict, httplock.CodeAlreadyCompleted)
	site.do(r).refused(t, http.StatusConflict, httplock.CodeAlreadyCompleted)
	if got := record(t, s.locks, idempotentKey(t, "records", "b")); got.State != core.StateNone {
		t.Errorf("the refusal by the inner guard is recorded as %q", got.State)
	}
	runs.ran(t, 1)
}

// testNestedRefusal: a request behind a lock that does not get its record leaves the lock.
func testNestedRefusal(t *testing.T, s *suite) {
	site := s.mount(t, &counter{}, s.exclusive(t, core.WithWait(patience)), s.once(t))
	r := request{user: "nested-refusal"}
	site.do(r).fresh(t, http.StatusCreated, "1")
	for range 3 {
		site.do(r).refused(t, http.StatusConflict, httplock.CodeAlreadyCompleted)
	}
}

// testOnceInsideLock: the tokens of the two belong to one name, and the handler gets the inner one.
func testOnceInsideLock(t *testing.T, s *suite) {
	tokens := make(chan int64, 1)
	h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		token, _ := core.TokenFrom(r.Context())
		tokens <- token
	})
	outer, inner := newWatch(), newWatch()
	site := s.mount(t, h, s.told(t, outer).exclusive(t), s.told(t, inner).once(t))
	site.do(request{user: "once-inside"}).want(t, http.StatusOK)
	lock, record := receive(t, outer.acquired, "the lock").Token, receive(t, inner.acquired, "the record").Token
	if got := receive(t, tokens, "the run"); lock == 0 || record <= lock || got != record {
		t.Errorf("tokens: lock %d, record %d, handler %d, want the record's", lock, record, got)
	}
}

// testReplayInside: a late retry of yesterday's order counts as the order of today for a Once around Idempotent. Idempotent
// outside answers it in front of the Once.
func testReplayInside(t *testing.T, s *suite) {
	daily := must(t)(s.Once(s.locks, ByPrincipal, unhurried(nil)...))
	for user, test := range map[string]struct {
		guards []Guard
		counts bool
	}{
		"once-outside": {[]Guard{daily, s.idempotent(t)}, true}, "idempotent-outside": {[]Guard{s.idempotent(t), daily}, false},
	} {
		runs := &counter{}
		routes := s.Handler(Route{Path: "/orders/{id}", Guards: test.guards, Handler: runs})
		site := s.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			day := user + r.Header.Get("X-Day")
			routes.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), PrincipalKey{}, day)))
		}))
		yesterday := request{user: user, key: "a", header: http.Header{"X-Day": {"1"}}}
		site.do(yesterday).fresh(t, http.StatusCreated, "1")
		late := request{user: user, key: "a", header: http.Header{"X-Day": {"2"}}}
		site.do(late).replayed(t, http.StatusCreated, "1")
		today := request{user: user, key: "b", header: http.Header{"X-Day": {"2"}}}
		if test.counts {
			site.do(today).refused(t, http.StatusConflict, httplock.CodeAlreadyCompleted)
			runs.ran(t, 1)
		} else {
			site.do(today).fresh(t, http.StatusCreated, "2")
			runs.ran(t, 2)
		}
	}
}
