package httpconformance

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

var leaseTests = tests{
	"LateRunChangesNoOthersRecord": testZombie,
	"EvictedRecordIsMadeAnew":      testEvicted,
	"HandlerLearnsOfLostLease":     testLostLease,
	"CrashedRunIsFollowed":         testCrashed,
}

// testZombie: a run that another one has followed writes nothing.
func testZombie(t *testing.T, s *suite) {
	entered := make(chan chan struct{}, 2)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		end := make(chan struct{})
		entered <- end
		select {
		case <-end:
		case <-t.Context().Done(): // the test has failed; its servers close behind their handlers
		}
		_, _ = w.Write([]byte(r.Header.Get("X-Run")))
	})
	watch := newWatch()
	site := s.mount(t, h, s.told(t, watch).idempotent(t))
	run := func(n string) request {
		return request{user: "zombie", key: "k", header: http.Header{"X-Run": {n}}}
	}
	key := idempotentKey(t, "zombie", "k")
	first := site.aside(t.Context(), run("1"))
	endFirst := receive(t, entered, "the first run")
	forget(t, s.locks, key)
	second := site.aside(t.Context(), run("2"))
	endSecond := receive(t, entered, "the second run")
	close(endFirst)
	receive(t, first, "the first answer").fresh(t, http.StatusOK, "1")
	receive(t, watch.finished, "the end of the first")
	if f := receive(t, watch.failed, "the failure"); f.KeyHash != key.Hash() || f.Kind != core.IncidentLost {
		t.Errorf("hook told %+v", f)
	}
	if got := record(t, s.locks, key); got.State != core.StateRunning {
		t.Errorf("the record is %q, want the second run in progress", got.State)
	}
	close(endSecond)
	receive(t, second, "the second answer").fresh(t, http.StatusOK, "2")
	site.do(run("3")).replayed(t, http.StatusOK, "2")
}

// testEvicted: better a late record than none.
func testEvicted(t *testing.T, s *suite) {
	stage := newStage(t)
	site := s.mount(t, stage, s.idempotent(t))
	r := request{user: "evicted", key: "k"}
	first := site.aside(t.Context(), r)
	receive(t, stage.entered, "the run")
	key := s.recordKey(t, idempotentKey(t, r.user, "k").Hash())
	if n, err := s.redis.Client().Del(t.Context(), key).Result(); n != 1 || err != nil {
		t.Fatalf("%d keys deleted, error %v", n, err)
	}
	close(stage.leave)
	receive(t, first, "the answer").fresh(t, http.StatusCreated, "done")
	site.do(r).replayed(t, http.StatusCreated, "done")
}

func testLostLease(t *testing.T, s *suite) {
	causes := make(chan error, 1)
	entered := make(chan struct{}, 1)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		<-r.Context().Done()
		causes <- context.Cause(r.Context())
		w.WriteHeader(http.StatusCreated)
	})
	watch := newWatch()
	site := s.mount(t, h, s.told(t, watch).once(t, core.WithTTL(time.Second)))
	r := request{user: "lost-lease"}
	first := site.aside(t.Context(), r)
	receive(t, entered, "the run")
	forget(t, s.locks, userKey(t, r.user))
	if cause := receive(t, causes, "the end of the context"); !errors.Is(cause, core.ErrLeaseLost) {
		t.Errorf("cause %v, want ErrLeaseLost", cause)
	}
	receive(t, first, "the answer").want(t, http.StatusCreated)
	if f := receive(t, watch.failed, "the failure"); f.Kind != core.IncidentLost || !errors.Is(f.Err, core.ErrLeaseLost) {
		t.Errorf("hook told %+v, want a lost lease", f)
	}
	// It took effect, and nobody else has begun.
	site.do(r).refused(t, http.StatusConflict, httplock.CodeAlreadyCompleted)
}

// testCrashed: what a process leaves that is not heard of any more, the failure policy decides.
func testCrashed(t *testing.T, s *suite) {
	for name, test := range map[string]struct {
		policy  core.FailurePolicy
		declare core.State
		status  int
		code    string
	}{
		"retry":     {core.RetryFailures, core.StateNone, 201, ""},
		"hold":      {core.HoldFailures, core.StateUnknown, 409, httplock.CodeOutcomeUnknown},
		"completed": {core.RetryFailures, core.StateCompleted, 409, httplock.CodeAlreadyCompleted},
	} {
		user := "crashed-" + name
		crashed := newLocks(t, s.redis.Client())
		hash := userKey(t, user).Hash()
		attempt, err := crashed.Once("http:"+hash, core.WithFailurePolicy(test.policy)).Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := attempt.Declare(t.Context(), test.declare); err != nil {
			t.Fatal(err)
		}
		_ = crashed.Close()
		// Time passes: the lease is over.
		if err := s.redis.Client().HSet(t.Context(), s.recordKey(t, hash), "deadline", 0).Err(); err != nil {
			t.Fatal(err)
		}
		runs := &counter{}
		wait := core.WithWait(patience)
		site := s.mount(t, runs, s.once(t, wait, core.WithFailurePolicy(test.policy)))
		a := site.do(request{user: user})
		if test.code == "" {
			a.fresh(t, test.status, "1")
		} else {
			a.refused(t, test.status, test.code)
			runs.ran(t, 0)
		}
	}
}
