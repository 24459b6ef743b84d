package httpconformance

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

var refusalTests = tests{
	"InnerRefusalReleasesOuterGuards":   testInnerRefusal,
	"InnerRefusalAfterTheWordIsNot":     testInnerRefusalAfterWord,
	"InnerClientGoneIsNotRecorded":      testInnerClientGone,
	"RefusedTwoGuardsFurtherInReleases": testDeepRefusal,
}

// refusing are guards that refuse every request of that user, with the code.
func (s *suite) refusing(t *testing.T, user string) map[string]Guard {
	t.Helper()
	taken := s.once(t)
	s.mount(t, &counter{}, taken).do(request{user: user}).want(t, http.StatusCreated)
	reused := s.idempotent(t)
	s.mount(t, &counter{}, reused).do(request{user: user, key: "k", body: "other"}).want(t, http.StatusCreated)
	lost := newLocks(t, nowhere(t))
	return map[string]Guard{
		httplock.CodeAlreadyCompleted: taken,
		httplock.CodeKeyReused:        reused,
		httplock.CodeKeyRequired:      s.idempotent(t, httplock.WithKeyHeader("X-Missing")),
		httplock.CodeScopeRequired:    must(t)(s.Exclusive(s.locks.Mutex, ByPrincipal)),
		httplock.CodePayloadTooLarge:  s.idempotent(t, httplock.WithBodyLimit(1)),
		httplock.CodeLockUnavailable:  must(t)(s.Exclusive(lost.Mutex, ByUser, core.WithWait(0))),
	}
}

// testInnerRefusal: the handler did not run, so whatever the inner guard answers is no outcome, with any policy.
func testInnerRefusal(t *testing.T, s *suite) {
	secret := httplock.WithKeySecret([]byte("sixteen bytes or more")) // so that the outer guard has other keys
	for policy := range policies {
		hold := core.WithFailurePolicy(policy)
		for kind, build := range map[string]builder{"once": s.Once, "idempotent": s.Idempotent} {
			t.Run(fmt.Sprint(kind, policy), func(t *testing.T) {
				t.Parallel()
				user := fmt.Sprint("inner-", kind, policy)
				for code, inner := range s.refusing(t, user) {
					runs, watch := &counter{}, newWatch()
					outer := must(t)(build(s.told(t, watch).locks, ByUser, unhurried(nil, secret, hold)...))
					site := s.mount(t, runs, outer, inner)
					for range 2 {
						a := site.do(request{user: user, key: "k", body: "order"})
						a.refused(t, a.status, code)
						if f := receive(t, watch.finished, "the end"); f.State != core.StateNone || f.Err != nil {
							t.Errorf("around %s: told %+v, want it released", code, f)
						}
					}
					runs.ran(t, 0)
				}
			})
		}
	}
}

// testInnerRefusalAfterWord: a handler between the guards has taken effect before the inner one refused.
func testInnerRefusalAfterWord(t *testing.T, s *suite) {
	taken := s.once(t)
	s.mount(t, &counter{}, taken).do(request{user: "after-word"}).want(t, http.StatusCreated)
	inner := s.Handler(Route{Path: "/orders/{id}", Guards: []Guard{taken}, Handler: &counter{}})
	site := s.mount(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := core.Complete(r.Context()); err != nil {
			t.Error(err)
		}
		inner.ServeHTTP(w, r)
	}), s.idempotent(t))
	r := request{user: "after-word", key: "k"}
	site.do(r).refused(t, http.StatusConflict, httplock.CodeAlreadyCompleted)
	site.do(r).replayed(t, http.StatusConflict, site.do(r).body)
}

// testInnerClientGone: who leaves while the inner guard waits finds nothing recorded.
func testInnerClientGone(t *testing.T, s *suite) {
	stage, watch := newStage(t), newWatch()
	locks, waiting := s.watched(t, watch.hooks())
	outer := newWatch()
	lock := must(t)(s.Exclusive(locks.Mutex, ByUser, httplock.WithAskTimeout(patience), core.WithWait(patience)))
	site := s.mount(t, stage, s.told(t, outer).idempotent(t), lock)
	first := site.aside(t.Context(), request{user: "inner-gone", key: "a"})
	receive(t, stage.entered, "the run")
	ctx, leave := context.WithCancel(t.Context())
	second := site.aside(ctx, request{user: "inner-gone", key: "b"})
	receive(t, waiting, "the second request to wait")
	leave()
	receive(t, second, "the client's error")
	if c := receive(t, watch.refused, "the refusal"); c.Code != httplock.CodeClientGone {
		t.Errorf("code %s", c.Code)
	}
	if f := receive(t, outer.finished, "the end"); f.State != core.StateNone {
		t.Errorf("told %+v, want it released", f)
	}
	close(stage.leave)
	receive(t, first, "the first answer").want(t, http.StatusCreated)
	site.do(request{user: "inner-gone", key: "b"}).fresh(t, http.StatusCreated, "done")
}

// testDeepRefusal: both guards around the one that refuses are released.
func testDeepRefusal(t *testing.T, s *suite) {
	user := "deep"
	for code, inner := range s.refusing(t, user) {
		outer, middle := newWatch(), newWatch()
		secret := func(text string) httplock.Option { return httplock.WithKeySecret([]byte(text)) }
		hold := core.WithFailurePolicy(core.HoldFailures)
		site := s.mount(t, &counter{}, s.told(t, outer).idempotent(t, secret("outer: 16 bytes or more"), hold),
			s.exclusive(t, secret("lock: 16 bytes or more")),
			s.told(t, middle).once(t, secret("middle: 16 bytes or more"), hold), inner)
		a := site.do(request{user: user, key: "k", body: "order"})
		a.refused(t, a.status, code)
		for name, watch := range map[string]*watch{"outer": outer, "middle": middle} {
			if f := receive(t, watch.finished, "the end"); f.State != core.StateNone {
				t.Errorf("%s of %s: told %+v, want it released", name, code, f)
			}
		}
	}
}
