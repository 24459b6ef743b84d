package nethttp_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/httpkit"
)

// TestFactsOfARun: a handler finds the number of its attempt, the hash of its key, and that it is guarded. A handler
// around the guard finds none of these.
func TestFactsOfARun(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	var attempts []int
	guard := httplock.Idempotent(locks, httplock.Unscoped(), patientOnce()...)
	guarded := guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		attempts = append(attempts, httpkit.Attempt(ctx))
		if hash := core.KeyHash(ctx); len(hash) != 43 || httplock.Degraded(ctx) {
			t.Errorf("hash %q, degraded %v", hash, httplock.Degraded(ctx))
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	srv := httpkit.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		guarded.ServeHTTP(w, r)
		if n, hash := httpkit.Attempt(r.Context()), core.KeyHash(r.Context()); n != 0 || hash != "" {
			t.Errorf("attempt %d, hash %q outside the guard", n, hash)
		}
	}))
	for range 2 {
		if got := postKey(t, srv, "k"); got != http.StatusServiceUnavailable {
			t.Errorf("status %d", got)
		}
	}
	if len(attempts) != 2 || attempts[0] != 1 || attempts[1] != 2 {
		t.Errorf("attempts %v, want 1 and 2", attempts)
	}
}

// TestHandlerDisposition: what the handler says of its run counts, and not its answer.
func TestHandlerDisposition(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	for name, test := range map[string]struct {
		word         func(context.Context) error
		answer, next int // the answer of the handler, and what the next request gets
		runs         int
	}{
		"complete": {core.Complete, http.StatusInternalServerError, http.StatusInternalServerError, 1},
		"release":  {core.Release, http.StatusCreated, http.StatusCreated, 2},
		"hold":     {holdRun, http.StatusCreated, http.StatusConflict, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs := 0
			guard := httplock.Idempotent(locks, httplock.Constant(name), patientOnce()...)
			srv := httpkit.Serve(t, guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				runs++
				if err := test.word(r.Context()); err != nil {
					t.Error(err)
				}
				w.WriteHeader(test.answer)
			})))
			if got := postKey(t, srv, "k"); got != test.answer {
				t.Errorf("status %d, want %d", got, test.answer)
			}
			if got := postKey(t, srv, "k"); got != test.next || runs != test.runs {
				t.Errorf("next: status %d after %d runs, want %d after %d", got, runs, test.next, test.runs)
			}
			if err := test.word(t.Context()); !errors.Is(err, core.ErrNotGuarded) {
				t.Errorf("without guard: %v, want ErrNotGuarded", err)
			}
		})
	}
}

// TestPeekAndForget: business code finds the record of a request by the same values, and can let another request run.
func TestPeekAndForget(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	guard, err := httplock.NewIdempotent(locks, httplock.Constant("ada"), patientOnce()...)
	if err != nil {
		t.Fatal(err)
	}
	runs := 0
	srv := httpkit.Serve(t, guard.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { runs++ })))
	scope, err := httplock.Constant("ada")(nil)
	if err != nil {
		t.Fatal(err)
	}
	must := must(t)
	chosen := must(httplock.IdempotencyKey("k"))
	for want := 1; want <= 2; want++ {
		postKey(t, srv, "k")
		postKey(t, srv, "k")
		record, err := guard.PeekKey(t.Context(), scope, chosen)
		if err != nil || record.State != core.StateCompleted || runs != want {
			t.Errorf("state %v, error %v, %d runs, want %d", record.State, err, runs, want)
		}
		if err := guard.Forget(t.Context(), record); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := httplock.IdempotencyKey(""); !errors.Is(err, httplock.ErrKeyInvalid) && !errors.Is(err, httplock.ErrKeyRequired) {
		t.Errorf("an empty key: %v", err)
	}
}

// TestKeyErrorIsTheDetail: the text of a KeyError begins the detail that the client gets, with the code of its kind.
func TestKeyErrorIsTheDetail(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	key := func(*http.Request) (httplock.Key, error) {
		return httplock.Key{}, httplock.KeyError(httplock.ErrKeyInvalid, "a cart has %d digits", 7)
	}
	a := refused(t, httplock.Exclusive(locks.Mutex, key, unhurried))
	a.Want(t, http.StatusBadRequest)
	if p := a.Problem(t); p.Code != httplock.CodeKeyInvalid || !strings.HasPrefix(p.Detail, "A cart has 7 digits.") {
		t.Errorf("problem %+v", p)
	}
}

// TestOnePerUser: behind Once, a second request of a user is refused after the first, and one of another user is not.
func TestOnePerUser(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	runs := 0
	guard := httplock.Once(locks, httplock.ByHeader("Idempotency-Key"), patientOnce()...)
	srv := httpkit.Serve(t, guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { runs++ })))
	for _, test := range []struct {
		user         string
		status, runs int
	}{
		{"ada", http.StatusOK, 1}, {"ada", http.StatusConflict, 1}, {"bob", http.StatusOK, 2}, {"ada", http.StatusConflict, 2},
	} {
		if got := postKey(t, srv, test.user); got != test.status || runs != test.runs {
			t.Errorf("%s: status %d after %d runs, want %d after %d", test.user, got, runs, test.status, test.runs)
		}
	}
}

// holdRun is [core.Hold] with a reason.
func holdRun(ctx context.Context) error { return core.Hold(ctx, "the handler says so") }
