package httpconformance

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// What a guard that fails open knows of its keys in an outage.
var knownTests = tests{
	"RunHereAndThenSilent":    testRunHereThenSilent,
	"RunUnguardedAndRepeated": testRunUnguarded,
	"RepeatedAtOnceInOutage":  testRepeatedAtOnce,
	"RefusedAndThenSilent":    testRefusedThenSilent,
	"SuccessAndThenSilent":    testSuccessThenSilent,
}

// behindRelay returns a client that reaches its Redis through a relay.
func behindRelay(t testing.TB, opts ...core.Option) (locks *core.Client, server *testkit.Server, relay *testkit.Relay) {
	t.Helper()
	server = testkit.Start(t)
	relay = server.Relay()
	locks = newLocks(t, relay.Client(), opts...)
	t.Cleanup(relay.Heal) // so that the client can close soon
	return locks, server, relay
}

// silence begins an outage for the clients of a relay.
func silence(relay *testkit.Relay) {
	relay.Refuse(true)
	relay.Reset()
}

// firstOn is a handler whose first run is on a stage. Others run beside it, and are counted.
type firstOn struct {
	*stage
	others counter
	began  atomic.Bool
}

func (f *firstOn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.began.CompareAndSwap(false, true) {
		f.stage.ServeHTTP(w, r)
		return
	}
	f.others.ServeHTTP(w, r)
}

// testRunHereThenSilent: a request is repeated in an outage, to the process that runs it.
func testRunHereThenSilent(t *testing.T, s *suite) {
	for name, build := range s.builders() {
		locks, _, relay := behindRelay(t)
		stage := &firstOn{stage: newStage(t)}
		site := s.mount(t, stage, must(t)(build(locks, ByUser, httplock.FailOpen())))
		r := request{user: "ada", key: "k"}
		first := site.aside(t.Context(), r)
		receive(t, stage.entered, "the run")
		silence(relay)
		if a := site.do(r); a.status != http.StatusConflict || a.header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %s %v", name, a.status, a.body, a.header)
		}
		relay.Heal()
		close(stage.leave)
		receive(t, first, "the first answer")
	}
}

// testRunUnguarded: both requests come in an outage. A guard inside of the same guard lets its request pass. A success counts,
// though it has no record.
func testRunUnguarded(t *testing.T, s *suite) {
	for name, build := range s.builders() {
		locks, _, relay := behindRelay(t)
		stage := &firstOn{stage: newStage(t)}
		guard := must(t)(build(locks, ByUser, httplock.FailOpen()))
		site := s.mount(t, stage, guard, guard)
		silence(relay)
		r := request{user: "ada", key: "k"}
		first := site.aside(t.Context(), r)
		receive(t, stage.entered, "the run")
		if a := site.do(r); a.status != http.StatusConflict {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
		close(stage.leave)
		receive(t, first, "the first answer").fresh(t, http.StatusCreated, "done")
		a := site.do(r)
		switch name {
		case "exclusive":
			a.fresh(t, http.StatusCreated, "1")
		case "idempotent":
			a.replayed(t, http.StatusCreated, "done")
		default:
			a.refused(t, http.StatusConflict, httplock.CodeAlreadyCompleted)
		}
	}
}

// testRepeatedAtOnce: an outage ends two calls together. The hook of the first one takes long.
func testRepeatedAtOnce(t *testing.T, s *suite) {
	for name, build := range s.builders() {
		told, goOn := make(chan struct{}, 100), make(chan struct{})
		var began atomic.Bool
		locks, _, relay := behindRelay(t, core.WithHooks(core.Hooks{Incident: func(context.Context, core.Incident) {
			if began.CompareAndSwap(false, true) {
				told <- struct{}{}
				await(t, goOn)
			}
		}}))
		runs := &counter{}
		site := s.mount(t, runs, must(t)(build(locks, ByUser, httplock.FailOpen())))
		silence(relay)
		r := request{user: "ada", key: "k"}
		first := site.aside(t.Context(), r)
		receive(t, told, "the outage")
		if a := site.do(r); a.status != http.StatusConflict {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
		close(goOn)
		receive(t, first, "the first answer").fresh(t, http.StatusCreated, "1")
	}
}

// testRefusedThenSilent: a client heeds its Retry-After, and comes back in an outage. The other run had a lease when Redis
// last answered.
func testRefusedThenSilent(t *testing.T, s *suite) {
	for name, build := range s.builders() {
		locks, server, relay := behindRelay(t)
		stage, runs := newStage(t), &counter{}
		r := request{user: "ada", key: "k"}
		first := s.mount(t, stage, must(t)(build(newLocks(t, server.Client()), ByUser, unhurried(nil)...))).aside(t.Context(), r)
		receive(t, stage.entered, "the run")
		site := s.mount(t, runs, must(t)(build(locks, ByUser, unhurried(nil, httplock.FailOpen(), core.WithWait(0))...)))
		for _, when := range []string{"held", "silent"} {
			if a := site.do(r); a.status != http.StatusConflict {
				t.Errorf("%s, %s: %d %s", name, when, a.status, a.body)
			}
			silence(relay)
		}
		runs.ran(t, 0)
		relay.Heal()
		close(stage.leave)
		receive(t, first, "the first answer")
	}
}

// testSuccessThenSilent: Redis has not confirmed the record of a request that has taken effect here.
func testSuccessThenSilent(t *testing.T, s *suite) {
	locks, _, relay := behindRelay(t)
	runs := &counter{}
	site := s.mount(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		silence(relay)
		runs.ServeHTTP(w, r)
	}), must(t)(s.Idempotent(locks, ByUser, httplock.FailOpen(), httplock.WithAskTimeout(patience))))
	r := request{user: "ada", key: "k"}
	site.do(r).fresh(t, http.StatusCreated, "1")
	site.do(r).replayed(t, http.StatusCreated, "1")
	runs.ran(t, 1)
}
