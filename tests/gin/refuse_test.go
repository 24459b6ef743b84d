package gin_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	ginlock "github.com/holdfast-go/holdfast/middleware/gin"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// hold makes a request that holds the lock of ada's cart 7 until the test ends.
func hold(t *testing.T, guard gin.HandlerFunc) {
	t.Helper()
	stage := newStage(t)
	srv := serve(t, router(guard, stage.handle))
	first := postAside(t.Context(), srv, "ada", "7")
	receive(t, stage.entered, "the run that holds the lock")
	t.Cleanup(func() {
		close(stage.leave)
		<-first
	})
}

// refused makes a request of ada for cart 7 through a guard whose handler must not run.
func refused(t *testing.T, guard gin.HandlerFunc) answer {
	t.Helper()
	srv := serve(t, router(guard, func(*gin.Context) { t.Error("the handler ran") }))
	return post(t.Context(), srv, "ada", "7")
}

func TestConflictAnswer(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client(), core.WithTTL(20*time.Second))
	guard := ginlock.Exclusive(locks.Mutex, cart(), core.WithWait(0), unhurried)
	hold(t, guard)
	a := refused(t, guard)
	a.want(t, http.StatusConflict)
	want := problem{
		Type: "about:blank", Title: "Conflict", Status: http.StatusConflict, Code: "lock-conflict", Retryable: true,
	}
	got := a.problem(t)
	if got.Detail == "" {
		t.Error("no detail")
	}
	// The lease of 20 s has nothing to do with it: no run has ended yet.
	if got.RetryAfter < 1 || got.RetryAfter > 3 {
		t.Errorf("retry_after %d, want a second or so", got.RetryAfter)
	}
	for name, value := range map[string]string{
		"Content-Language": "en", "Cache-Control": "no-store", "Retry-After": strconv.Itoa(got.RetryAfter),
	} {
		if a.header.Get(name) != value {
			t.Errorf("%s: %q, want %q", name, a.header.Get(name), value)
		}
	}
	got.Detail, got.RetryAfter = "", 0
	if got != want {
		t.Errorf("problem %+v, want %+v", got, want)
	}
}

// TestRefusalHandlerOfNetHTTP: a guard of gin takes a handler of refusals of net/http too, and a guard of net/http answers with the
// problem in place of a handler for gin.
func TestRefusalHandlerOfNetHTTP(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	key := httplock.ByHeader("X-Missing")
	handler := httplock.WithRefusalHandler(func(w http.ResponseWriter, _ *http.Request, conflict *httplock.Conflict) {
		http.Error(w, conflict.Code, http.StatusTeapot)
	})
	a := refused(t, ginlock.Exclusive(locks.Mutex, key, handler))
	if a.want(t, http.StatusTeapot); strings.TrimSpace(a.body) != httplock.CodeKeyRequired {
		t.Errorf("body %q", a.body)
	}
	w := httptest.NewRecorder()
	httplock.Exclusive(locks.Mutex, key, ginlock.ErrorsOnly())(http.NotFoundHandler()).
		ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil))
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), httplock.CodeKeyRequired) {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}

func TestGuardsKeepTheirOwnOptions(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	plain := ginlock.Exclusive(locks.Mutex, cart(), core.WithWait(0), unhurried)
	handled := ginlock.Exclusive(locks.Mutex, cart(), core.WithWait(0), unhurried, ginlock.WithRefusalHandler(
		func(c *gin.Context, conflict *httplock.Conflict) {
			if !errors.Is(conflict, core.ErrNotAcquired) || conflict.KeyHash == "" || conflict.RetryAfter <= 0 {
				t.Errorf("conflict %+v", conflict)
			}
			c.Header("X-Seen", "yes")
			conflict.Status = http.StatusTooManyRequests
			ginlock.Refuse(c, conflict)
		}))
	hold(t, plain)
	for _, test := range []struct {
		guard           gin.HandlerFunc
		status          int
		seen            string
		problem, titled string
	}{
		{plain, http.StatusConflict, "", "about:blank", "Conflict"},
		{handled, http.StatusTooManyRequests, "yes", "about:blank", "Too Many Requests"},
	} {
		a := refused(t, test.guard)
		a.want(t, test.status)
		p := a.problem(t)
		if p.Type != test.problem || p.Title != test.titled || p.Status != test.status {
			t.Errorf("problem %+v, want type %q, title %q", p, test.problem, test.titled)
		}
		if a.header.Get("X-Seen") != test.seen {
			t.Errorf("status %d: X-Seen %q", test.status, a.header.Get("X-Seen"))
		}
	}
}

func TestKeyErrors(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	secret := errors.New("database password")
	for name, test := range map[string]struct {
		err    error
		status int
		code   string
	}{
		"none":     {httplock.ErrKeyRequired, http.StatusBadRequest, httplock.CodeKeyRequired},
		"bad":      {httplock.ErrKeyInvalid, http.StatusBadRequest, httplock.CodeKeyInvalid},
		"scope":    {httplock.ErrScopeRequired, http.StatusUnauthorized, httplock.CodeScopeRequired},
		"no route": {httplock.ErrNoRoute, http.StatusInternalServerError, httplock.CodeKeyFailed},
		"other":    {secret, http.StatusInternalServerError, httplock.CodeKeyFailed},
		"zero key": {nil, http.StatusBadRequest, httplock.CodeKeyRequired},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			watch := newWatch()
			locks := newLocks(t, rdb, watch.hooks())
			key := func(*http.Request) (httplock.Key, error) { return httplock.Key{}, test.err }
			a := refused(t, ginlock.Exclusive(locks.Mutex, key, core.WithWait(patience)))
			a.want(t, test.status)
			if p := a.problem(t); p.Code != test.code || p.Retryable || p.RetryAfter != 0 {
				t.Errorf("problem %+v, want code %q", p, test.code)
			}
			if strings.Contains(a.body, secret.Error()) {
				t.Errorf("the cause is in the answer: %s", a.body)
			}
			c := receive(t, watch.refused, "the hook")
			if test.err != nil && !errors.Is(c, test.err) {
				t.Errorf("the hook was told %v, want %v", c, test.err)
			}
		})
	}
}

// What a client sends is in no key of Redis, no value and no answer.
func TestRefusalsDoNotQuoteTheRequest(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := newLocks(t, rdb)
	const user, cartID = "ada@example.com", "cart-number-seven"
	stage := newStage(t)
	srv := serve(t, router(ginlock.Exclusive(locks.Mutex, cart(), core.WithWait(0), unhurried), stage.handle))
	first := postAside(t.Context(), srv, user, cartID)
	receive(t, stage.entered, "the run")
	texts := []string{post(t.Context(), srv, user, cartID).body}
	for _, key := range rdb.Keys(t.Context(), "*").Val() {
		dump, err := rdb.Dump(t.Context(), key).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			t.Fatal(err)
		}
		texts = append(texts, key, dump)
	}
	if len(texts) < 3 {
		t.Fatalf("nothing in Redis: %q", texts)
	}
	for _, text := range texts {
		if strings.Contains(text, user) || strings.Contains(text, cartID) {
			t.Errorf("user text in %q", text)
		}
	}
	close(stage.leave)
	receive(t, first, "the answer").want(t, http.StatusOK)
}
