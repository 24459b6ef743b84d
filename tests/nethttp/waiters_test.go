package nethttp_test

import (
	"net/http"
	"testing"

	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/httpkit"
)

// TestWaitersAreShared: one user, with many keys, does not take all places to wait from another one.
func TestWaitersAreShared(t *testing.T) {
	t.Parallel()
	stage, watch := httpkit.NewStage(t), newWatch()
	locks := newLocks(t, testkit.Start(t).Client(), watch.hooks())
	user := httplock.ByPrincipal(func(r *http.Request) (string, error) { return r.Header.Get("X-User"), nil })
	guard := httplock.Exclusive(locks.Mutex, httplock.Keys(user, httplock.ByQuery("cart")), patient, unhurried,
		httplock.WithWaiters(16, 6))
	srv := httpkit.Serve(t, guard(stage))
	var answers []<-chan httpkit.Answer
	run := func(user, cart string) string { // of a cart for which nobody else waits
		t.Helper()
		answers = append(answers, httpkit.PostAside(t.Context(), srv, user, cart))
		httpkit.Receive(t, stage.Entered, "a run of "+user)
		return httpkit.Receive(t, watch.acquired, "the key of "+user)
	}
	refused := 0
	for _, cart := range []string{"1", "2", "3", "4", "5", "6", "7"} {
		hash := run("greedy", cart)
		next := httpkit.PostAside(t.Context(), srv, "greedy", cart)
		testkit.Eventually(t, httpkit.Patience, "the next request to wait, or to be refused", func() bool {
			info, err := locks.Inspect(t.Context(), "http:"+hash)
			return err == nil && info.Waiters > 0 || len(watch.refused) > 0
		})
		if len(watch.refused) == 0 {
			answers = append(answers, next)
			continue
		}
		if p := httpkit.Receive(t, next, "the refusal").Problem(t); p.Code != httplock.CodeLockConflict {
			t.Errorf("code %q, want lock-conflict", p.Code)
		}
		<-watch.refused
		refused++
	}
	if refused == 0 {
		t.Error("a user waits for more keys than the guard has places")
	}
	hash := run("modest", "1")
	next := httpkit.PostAside(t.Context(), srv, "modest", "1")
	answers = append(answers, next)
	testkit.Eventually(t, httpkit.Patience, "the next request of another user to wait", func() bool {
		info, err := locks.Inspect(t.Context(), "http:"+hash)
		return err == nil && info.Waiters > 0 || len(watch.refused) > 0
	})
	close(stage.Leave)
	for _, a := range answers {
		httpkit.Receive(t, a, "an answer").Want(t, http.StatusOK)
	}
}
