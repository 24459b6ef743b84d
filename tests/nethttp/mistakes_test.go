package nethttp_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/middleware"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/httpkit"
)

// TestStricterGuardInside: a guard with the same key that holds failures makes the run of the guard around it hold them.
func TestStricterGuardInside(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	charges := 0
	pay := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		charges++
		w.WriteHeader(http.StatusInternalServerError)
	})
	lenient := httplock.Idempotent(locks, httplock.Unscoped(), patientOnce()...)
	strict := httplock.Idempotent(locks, httplock.Unscoped(), append(patientOnce(), httplock.WithFailurePolicy(httplock.HoldFailures))...)
	srv := httpkit.Serve(t, lenient(strict(pay)))
	for _, want := range []int{http.StatusInternalServerError, http.StatusConflict, http.StatusConflict} {
		if got := postKey(t, srv, "k"); got != want {
			t.Errorf("status %d, want %d", got, want)
		}
	}
	if charges != 1 {
		t.Errorf("%d charges", charges)
	}
}

// TestUnknownDispositionIsNoJudgement: a judge that returns none of the dispositions has not judged.
func TestUnknownDispositionIsNoJudgement(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	runs := 0
	guard := httplock.Idempotent(locks, httplock.Unscoped(), append(patientOnce(),
		httplock.WithCompletion(func(httplock.Outcome) httplock.Disposition { return 77 }))...)
	srv := httpkit.Serve(t, guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		runs++
		w.WriteHeader(http.StatusCreated)
	})))
	for range 3 {
		if got := postKey(t, srv, "k"); got != http.StatusCreated {
			t.Errorf("status %d", got)
		}
	}
	if runs != 1 {
		t.Errorf("%d runs", runs)
	}
}

// leaky is a codec that fails, and returns the text all the same.
type leaky struct{}

func (leaky) Seal(plain []byte, _ string) ([]byte, error) { return plain, errors.New("no key") }

func (leaky) Open(sealed []byte, _ string) ([]byte, error) { return sealed, nil }

// TestUnsealedTextIsNotRecorded, whatever a codec returns with its error.
func TestUnsealedTextIsNotRecorded(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	guard := httplock.Idempotent(locks, httplock.Unscoped(), append(patientOnce(), httplock.WithCodec(leaky{}))...)
	srv := httpkit.Serve(t, guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("secret")) })))
	for _, want := range []int{http.StatusOK, http.StatusConflict} {
		if got := postKey(t, srv, "k"); got != want {
			t.Errorf("status %d, want %d", got, want)
		}
	}
}

// TestMistakesAreToldWhenBuilt: methods in lower case would guard nothing, a body memory below the limit refuse all.
func TestMistakesAreToldWhenBuilt(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	for says, opt := range map[string]httplock.Option{
		"upper case": httplock.WithMethods("post"), "body memory": httplock.WithBodyMemory(10),
		"negative wait": middleware.WithWait(-1),
	} {
		if _, err := httplock.NewIdempotent(locks, httplock.Unscoped(), opt); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// TestMistakesOfTheProgramAreNoOutage: no retry mends them.
func TestMistakesOfTheProgramAreNoOutage(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	read := httplock.Exclusive(locks.Read, httplock.Constant("all"), unhurried, httplock.WithWait(httpkit.Patience))
	write := httplock.Exclusive(locks.Write, httplock.Constant("all"), unhurried, httplock.WithWait(httpkit.Patience))
	if got := postKey(t, httpkit.Serve(t, read(write(ok))), "k"); got != http.StatusInternalServerError {
		t.Errorf("an upgrade: status %d", got)
	}
}

// TestTokensOfAnyNameAreNotRecorded.
func TestTokensOfAnyNameAreNotRecorded(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Token", "X-Token", "Id-Token", "X-Jwt", "X-Vault-Token", "Session", "X-Session-Id", "Cf-Ray"} {
		if diff := middleware.Difference(nil, http.Header{name: {"secret"}}); len(diff) != 0 {
			t.Errorf("%s is recorded", name)
		}
	}
}

// patientOnce are options for a busy machine.
func patientOnce() []httplock.Option {
	return []httplock.Option{httplock.WithAskTimeout(30 * time.Second), httplock.WithFinishTimeout(30 * time.Second)}
}

// postKey returns the status of the answer to a request with an Idempotency-Key.
func postKey(t *testing.T, srv *httptest.Server, key string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", key)
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}
