package httpconformance

import (
	"net/http"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// testLimit: with semaphores n requests of a key run at a time, over several guards. One more is refused, with the
// status of a limit, or waits for its turn. Requests of other keys run.
func testLimit(t *testing.T, s *suite) {
	const n = 3
	limited := func(opts ...httplock.Option) Guard {
		return must(t)(s.Exclusive(s.locks.Limit(n), ByUser, unhurried(opts)...))
	}
	stage := newStage(t)
	here := s.mount(t, stage, limited(core.WithWait(0)))
	there := s.mount(t, stage, limited(core.WithWait(0)))
	patient := s.mount(t, stage, limited(core.WithWait(patience)))
	r := request{user: "limited"}
	var runs []<-chan answer
	for _, site := range []*site{here, there, here} {
		runs = append(runs, site.aside(t.Context(), r))
		receive(t, stage.entered, "a run")
	}
	for _, site := range []*site{here, there} {
		p := site.do(r).refused(t, http.StatusTooManyRequests, httplock.CodeLimitReached)
		if p.RetryAfter < 1 || !p.Retryable {
			t.Errorf("%+v, want a Retry-After", p)
		}
	}
	waits := patient.aside(t.Context(), r)
	other := here.aside(t.Context(), request{user: "other"})
	receive(t, stage.entered, "the run of another key")
	close(stage.leave)
	for _, run := range append(runs, waits, other) {
		receive(t, run, "an answer").want(t, http.StatusCreated)
	}
	// A request for several permits takes them all, or none.
	all := s.mount(t, &counter{}, limited(core.WithWait(0), core.WithPermits(n)))
	all.do(r).want(t, http.StatusCreated)
	a := s.whileRunning(t, r, limited(core.WithWait(0), core.WithPermits(n-1)))
	a.refused(t, http.StatusTooManyRequests, httplock.CodeLimitReached)
	testLockWithinItself(t, s)
}

// testLockWithinItself: a guard inside another one of the same key that would wait for it is a mistake of the program, and
// the log says so.
func testLockWithinItself(t *testing.T, s *suite) {
	locks, j := logged(t, testkit.Start(t).Client())
	outer := must(t)(s.Exclusive(locks.Limit(2), ByUser, unhurried(nil)...))
	inner := must(t)(s.Exclusive(locks.Mutex, ByUser, unhurried(nil)...))
	site := s.mount(t, &counter{}, outer, inner)
	for range 2 {
		p := site.do(request{user: "ada"}).refused(t, http.StatusInternalServerError, httplock.CodeGuardFailed)
		if p.Retryable {
			t.Errorf("%+v: it fails again", p)
		}
	}
	j.want(t, 1, "ERROR", "cannot be upgraded")
}
