package httpconformance

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// What becomes of a run that began without Redis, behind a guard that fails open, once Redis replies again.
var recoveredTests = tests{
	"UnguardedRunDoesNotRunAgain":      testUnguardedOnce,
	"RecordedRunDoesNotRunAgain":       testRecordedOnce,
	"UnguardedRunIsRecordedLate":       testUnguardedRecorded,
	"UnguardedRunExcludesAfterOutage":  testUnguardedExcludes,
	"UnguardedUnknownOutcomeIsHeld":    testUnguardedHeld,
	"UnguardedFailureMayRunAgain":      testUnguardedFailure,
	"RecordOfAnotherReplicaIsKept":     testOtherRecordKept,
	"UnguardedRunCanBeForgotten":       testUnguardedForgotten,
	"UnguardedRecordEndsAtItsOwnTime":  testUnguardedRetention,
	"UnguardedRunIsRefusedToOtherBody": testUnguardedOtherBody,
}

// opening are the options of a guard that fails open soon.
func opening(more ...httplock.Option) []httplock.Option {
	return append([]httplock.Option{httplock.FailOpen(), httplock.WithAskTimeout(200 * time.Millisecond)}, more...)
}

// recorders are the guards that keep records.
func (s *suite) recorders() map[string]builder {
	all := s.builders()
	delete(all, "exclusive")
	return all
}

// unguarded has a request run while Redis is stopped, and lets Redis continue.
func unguarded(t testing.TB, server *testkit.Server, site *site, r request) answer {
	t.Helper()
	server.Pause()
	defer server.Resume()
	return site.do(r)
}

// testUnguardedOnce: the client repeats its request when Redis replies again.
func testUnguardedOnce(t *testing.T, s *suite) {
	for name, build := range s.recorders() {
		server, locks := outage(t)
		runs := &counter{}
		site := s.mount(t, runs, must(t)(build(locks, ByUser, opening()...)))
		r := request{user: "ada", key: "k", body: "one"}
		unguarded(t, server, site, r).fresh(t, http.StatusCreated, "1")
		for range 3 {
			a := site.do(r)
			if name == "idempotent" {
				a.replayed(t, http.StatusCreated, "1")
			} else {
				a.refused(t, http.StatusConflict, httplock.CodeAlreadyCompleted)
			}
		}
		runs.ran(t, 1)
	}
}

// testRecordedOnce: Redis goes away right after it has recorded a run, or after it has recorded late one that began without it. The
// client repeats its request in the outage.
func testRecordedOnce(t *testing.T, s *suite) {
	for _, build := range s.recorders() {
		server, locks, watch := outageTold(t)
		runs := &counter{}
		guard := must(t)(build(locks, ByUser, opening()...))
		site := s.mount(t, runs, guard)
		before, within := request{key: "k"}, request{user: "bob", key: "k"}
		want := int64(1)
		for ; ; want++ { // until Redis has recorded a run at once: a busy machine may need longer than the guard gives it
			before.user = fmt.Sprint("ada", want)
			site.do(before).fresh(t, http.StatusCreated, fmt.Sprint(want))
			if len(watch.failed) == 0 {
				break
			}
			for len(watch.failed) > 0 {
				<-watch.failed
			}
		}
		unguarded(t, server, site, before).refused(t, http.StatusConflict, httplock.CodeAlreadyCompleted)
		want++
		unguarded(t, server, site, within).fresh(t, http.StatusCreated, fmt.Sprint(want))
		awaitRecorded(t, server, int(want))
		unguarded(t, server, site, within).refused(t, http.StatusConflict, httplock.CodeAlreadyCompleted)
		runs.ran(t, want)
	}
}

// awaitRecorded waits until Redis has so many records that are completed.
func awaitRecorded(t testing.TB, server *testkit.Server, want int) {
	t.Helper()
	rdb := server.Client()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		found := 0
		for _, key := range rdb.Keys(t.Context(), "holdfast:once*").Val() {
			if rdb.HGet(t.Context(), key, "state").Val() == string(core.StateCompleted) {
				found++
			}
		}
		if found >= want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d records are completed, want %d", found, want)
		}
	}
}

// awaitRecord waits until the record of a key has a state.
func (s *suite) awaitRecord(t testing.TB, guard Guard, key httplock.Key, want core.State) core.Record {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		r, err := guard.(operated).PeekKey(t.Context(), key)
		if err == nil && r.State == want {
			return r
		}
		if time.Now().After(deadline) {
			t.Fatalf("record %+v, error %v, want state %q", r, err, want)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// testUnguardedRecorded: other replicas learn of the run, and of its answer. A process that ends afterwards forgets nothing.
func testUnguardedRecorded(t *testing.T, s *suite) {
	server, locks := outage(t)
	runs := &counter{}
	guard := must(t)(s.Idempotent(locks, ByUser, opening(core.WithQuota(100))...))
	r := request{user: "ada", key: "k", body: "one"}
	unguarded(t, server, s.mount(t, runs, guard), r).fresh(t, http.StatusCreated, "1")
	record := s.awaitRecord(t, guard, idempotentKey(t, "ada", "k"), core.StateCompleted)
	if !strings.HasSuffix(string(record.Value), "\r\n\r\n1") || len(record.Fingerprint) == 0 {
		t.Errorf("record %+v", record)
	}
	if listed, err := guard.(operated).Records(t.Context(), "ada"); err != nil || len(listed) != 1 {
		t.Errorf("listed %v, %v", listed, err)
	}
	other := s.mount(t, runs, must(t)(s.Idempotent(newLocks(t, server.Client()), ByUser, unhurried(nil)...)))
	other.do(r).replayed(t, http.StatusCreated, "1")
	r.body = "another"
	other.do(r).refused(t, http.StatusUnprocessableEntity, httplock.CodeKeyReused)
	runs.ran(t, 1)
}

// testUnguardedExcludes: the run continues when Redis replies again, and has no lease there.
func testUnguardedExcludes(t *testing.T, s *suite) {
	for name, build := range s.builders() {
		server, locks := outage(t)
		stage := &firstOn{stage: newStage(t)}
		site := s.mount(t, stage, must(t)(build(locks, ByUser, opening()...)))
		r := request{user: "ada", key: "k"}
		server.Pause()
		first := site.aside(t.Context(), r)
		receive(t, stage.entered, "the run")
		server.Resume()
		if a := site.do(r); a.status != http.StatusConflict || a.header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %s %v", name, a.status, a.body, a.header)
		}
		close(stage.leave)
		receive(t, first, "the first answer").fresh(t, http.StatusCreated, "done")
		stage.others.ran(t, 0)
	}
}

// testUnguardedHeld: a handler says that nobody knows, and has nobody to tell at that time.
func testUnguardedHeld(t *testing.T, s *suite) {
	server, locks := outage(t)
	runs := &counter{}
	guard := must(t)(s.Idempotent(locks, ByUser, opening()...))
	site := s.mount(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := core.Hold(r.Context(), "the handler says so"); !errors.Is(err, core.ErrUnavailable) {
			t.Errorf("error %v, want that it is not recorded yet", err)
		}
		runs.ServeHTTP(w, r)
	}), guard)
	r := request{user: "ada", key: "k"}
	unguarded(t, server, site, r).fresh(t, http.StatusCreated, "1")
	site.do(r).refused(t, http.StatusConflict, httplock.CodeOutcomeUnknown)
	if record := s.awaitRecord(t, guard, idempotentKey(t, "ada", "k"), core.StateUnknown); record.Reason == "" {
		t.Errorf("record %+v", record)
	}
	site.do(r).refused(t, http.StatusConflict, httplock.CodeOutcomeUnknown)
	runs.ran(t, 1)
}

// testUnguardedFailure: what has done nothing leaves nothing.
func testUnguardedFailure(t *testing.T, s *suite) {
	server, locks := outage(t)
	h := &failing{}
	site := s.mount(t, h, must(t)(s.Idempotent(locks, ByUser, opening()...)))
	r := request{user: "ada", key: "k"}
	unguarded(t, server, site, r).want(t, http.StatusInternalServerError)
	h.mended = true
	site.insist(r).fresh(t, http.StatusCreated, "2")
}

// testOtherRecordKept: another replica has run the request too, and was the first to record its answer.
func testOtherRecordKept(t *testing.T, s *suite) {
	server, locks := outage(t)
	relay := server.Relay()
	far := newLocks(t, relay.Client())
	t.Cleanup(relay.Heal)
	runs := &counter{}
	cut := s.mount(t, runs, must(t)(s.Idempotent(far, ByUser, httplock.FailOpen())))
	near := s.mount(t, runs, must(t)(s.Idempotent(locks, ByUser, unhurried(nil)...)))
	r := request{user: "ada", key: "k"}
	silence(relay)
	cut.do(r).fresh(t, http.StatusCreated, "1")
	near.do(r).fresh(t, http.StatusCreated, "2")
	cut.do(r).replayed(t, http.StatusCreated, "1") // as far as it knows
	relay.Heal()
	for deadline := time.Now().Add(patience); ; {
		a := cut.do(r)
		if a.status == http.StatusCreated && a.body == "2" {
			break
		}
		a.replayed(t, http.StatusCreated, "1")
		if time.Now().After(deadline) {
			t.Fatal("the record of the other replica is not found")
		}
		time.Sleep(10 * time.Millisecond)
	}
	near.do(r).replayed(t, http.StatusCreated, "2")
	runs.ran(t, 2)
}

// testUnguardedForgotten: the order is cancelled, so the next request runs.
func testUnguardedForgotten(t *testing.T, s *suite) {
	locks, _, relay := behindRelay(t)
	runs := &counter{}
	guard := must(t)(s.Idempotent(locks, ByUser, httplock.FailOpen()))
	site := s.mount(t, runs, guard)
	r, key := request{user: "ada", key: "k"}, idempotentKey(t, "ada", "k")
	silence(relay)
	site.do(r).fresh(t, http.StatusCreated, "1")
	relay.Heal()
	testkit.Eventually(t, patience, "the key to be forgotten", func() bool {
		seen, err := guard.(operated).PeekKey(t.Context(), key)
		return err == nil && guard.(operated).Forget(t.Context(), seen) == nil
	})
	site.insist(r).fresh(t, http.StatusCreated, "2")
	site.do(r).replayed(t, http.StatusCreated, "2")
}

// testUnguardedRetention: a record that is written late expires no later than without the outage.
func testUnguardedRetention(t *testing.T, s *suite) {
	server, locks := outage(t)
	until := time.Now().Add(time.Hour)
	runs := &counter{}
	guard := must(t)(s.Once(locks, ByUser, opening(httplock.WithRetentionUntil(func(time.Time) time.Time { return until }))...))
	r := request{user: "ada"}
	site := s.mount(t, runs, guard)
	unguarded(t, server, site, r).fresh(t, http.StatusCreated, "1")
	a := site.do(r)
	a.refused(t, http.StatusConflict, httplock.CodeAlreadyCompleted)
	if seconds, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || seconds < 3000 || seconds > 3600 {
		t.Errorf("Retry-After %q, want the rest of the hour", a.header.Get("Retry-After"))
	}
	record := s.awaitRecord(t, guard, userKey(t, "ada"), core.StateCompleted)
	if end := time.Now().Add(record.Retention); end.After(until.Add(5*time.Second)) || end.Before(until.Add(-time.Minute)) {
		t.Errorf("the record is kept until %v, want %v", end, until)
	}
	runs.ran(t, 1)
}

// testUnguardedOtherBody: the response belongs to one request only.
func testUnguardedOtherBody(t *testing.T, s *suite) {
	server, locks := outage(t)
	runs := &counter{}
	site := s.mount(t, runs, must(t)(s.Idempotent(locks, ByUser, opening()...)))
	r := request{user: "ada", key: "k", body: "one"}
	unguarded(t, server, site, r).fresh(t, http.StatusCreated, "1")
	r.body = "another"
	site.do(r).refused(t, http.StatusUnprocessableEntity, httplock.CodeKeyReused)
	runs.ran(t, 1)
}
