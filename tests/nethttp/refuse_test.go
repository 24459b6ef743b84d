package nethttp_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
	"github.com/holdfast-go/holdfast/tests/testkit/httpkit"
)

// hold makes a request that holds the lock of ada's cart 7 until the test ends.
func hold(t *testing.T, guard func(http.Handler) http.Handler) {
	t.Helper()
	stage := httpkit.NewStage(t)
	srv := httpkit.Serve(t, guard(stage))
	first := httpkit.PostAside(t.Context(), srv, "ada", "7")
	httpkit.Receive(t, stage.Entered, "the run that holds the lock")
	t.Cleanup(func() {
		close(stage.Leave)
		<-first
	})
}

// refused makes a request of ada for cart 7 through a guard whose handler must not run.
func refused(t *testing.T, guard func(http.Handler) http.Handler) httpkit.Answer {
	t.Helper()
	srv := httpkit.Serve(t, guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the handler ran")
	})))
	return httpkit.Post(t.Context(), srv, "ada", "7")
}

func TestConflictAnswer(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client(), core.WithTTL(20*time.Second))
	guard := httplock.Exclusive(locks.Mutex, cart(), core.WithWait(0), unhurried)
	hold(t, guard)
	a := refused(t, guard)
	a.Want(t, http.StatusConflict)
	want := httpkit.Problem{
		Type: "about:blank", Title: "Conflict", Status: http.StatusConflict, Code: "lock-conflict", Retryable: true,
	}
	got := a.Problem(t)
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
		if a.Header.Get(name) != value {
			t.Errorf("%s: %q, want %q", name, a.Header.Get(name), value)
		}
	}
	got.Detail, got.RetryAfter = "", 0
	if got != want {
		t.Errorf("problem %+v, want %+v", got, want)
	}
}

func TestGuardsKeepTheirOwnOptions(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	plain := httplock.Exclusive(locks.Mutex, cart(), core.WithWait(0), unhurried)
	handled := httplock.Exclusive(locks.Mutex, cart(), core.WithWait(0), unhurried, httplock.WithRefusalHandler(
		func(w http.ResponseWriter, r *http.Request, c *httplock.Conflict) {
			if !errors.Is(c, core.ErrNotAcquired) || c.KeyHash == "" || !c.Retryable || c.RetryAfter <= 0 {
				t.Errorf("conflict %+v", c)
			}
			w.Header().Set("X-Seen", "yes")
			c.Status = http.StatusTooManyRequests
			httplock.Refuse(w, r, c)
		}))
	hold(t, plain)
	for _, test := range []struct {
		guard           func(http.Handler) http.Handler
		status          int
		seen            string
		problem, titled string
	}{
		{plain, http.StatusConflict, "", "about:blank", "Conflict"},
		{handled, http.StatusTooManyRequests, "yes", "about:blank", "Too Many Requests"},
	} {
		a := refused(t, test.guard)
		a.Want(t, test.status)
		p := a.Problem(t)
		if p.Type != test.problem || p.Title != test.titled || p.Status != test.status {
			t.Errorf("problem %+v, want type %q, title %q", p, test.problem, test.titled)
		}
		if a.Header.Get("X-Seen") != test.seen {
			t.Errorf("status %d: X-Seen %q", test.status, a.Header.Get("X-Seen"))
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
			a := refused(t, httplock.Exclusive(locks.Mutex, key, core.WithWait(httpkit.Patience)))
			a.Want(t, test.status)
			if p := a.Problem(t); p.Code != test.code || p.Retryable || p.RetryAfter != 0 {
				t.Errorf("problem %+v, want code %q", p, test.code)
			}
			if strings.Contains(a.Body, secret.Error()) {
				t.Errorf("the cause is in the answer: %s", a.Body)
			}
			c := httpkit.Receive(t, watch.refused, "the hook")
			if test.err != nil && !errors.Is(c, test.err) {
				t.Errorf("the hook was told %v, want %v", c, test.err)
			}
		})
	}
}

// TestKeyFuncPanics: a key function that panics has failed. The log says where, and does not have the value of the panic.
func TestKeyFuncPanics(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	for want, key := range map[string]httplock.KeyFunc{
		"nil pointer dereference (at refuse_test.go:": func(*http.Request) (httplock.Key, error) {
			session := map[string]*struct{ key httplock.Key }{}
			return session["ada"].key, nil
		},
		"panicked: *errors.errorString (at refuse_test.go:": func(*http.Request) (httplock.Key, error) { panic(errors.New("secret")) },
	} {
		log := new(testkit.Log)
		locks := newLocks(t, rdb, core.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
		for name, guard := range map[string]func(http.Handler) http.Handler{
			"Exclusive": httplock.Exclusive(locks.Mutex, key, httplock.OptionalKey()),
			"Once":      httplock.Once(locks, httplock.Keys(httplock.ByRoute(), key)), "Idempotent": httplock.Idempotent(locks, key),
		} {
			a := refused(t, guard)
			a.Want(t, http.StatusInternalServerError)
			if p := a.Problem(t); p.Code != httplock.CodeKeyFailed || strings.Contains(a.Body, "secret") {
				t.Errorf("%s: %s", name, a.Body)
			}
		}
		if text := log.String(); !strings.Contains(text, want) || strings.Contains(text, "secret") {
			t.Errorf("%q is not in the log, or the value of the panic is: %s", want, text)
		}
	}
}

// What a client sends is in no key of Redis, no value and no answer.
func TestRefusalsDoNotQuoteTheRequest(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := newLocks(t, rdb)
	const user, cartID = "ada@example.com", "cart-number-seven"
	stage := httpkit.NewStage(t)
	srv := httpkit.Serve(t, httplock.Exclusive(locks.Mutex, cart(), core.WithWait(0), unhurried)(stage))
	first := httpkit.PostAside(t.Context(), srv, user, cartID)
	httpkit.Receive(t, stage.Entered, "the run")
	texts := []string{httpkit.Post(t.Context(), srv, user, cartID).Body}
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
	close(stage.Leave)
	httpkit.Receive(t, first, "the answer").Want(t, http.StatusOK)
}

func TestRedisOutage(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*testkit.Server){
		"killed": (*testkit.Server).Kill, "frozen": (*testkit.Server).Pause,
	} {
		for _, wait := range []time.Duration{0, 250 * time.Millisecond} {
			t.Run(name+", wait "+wait.String(), func(t *testing.T) {
				t.Parallel()
				srv := testkit.Start(t)
				watch := newWatch()
				locks := newLocks(t, srv.Client(), watch.hooks())
				closed := httplock.Exclusive(locks.Mutex, cart(), core.WithWait(wait))
				open := httplock.Exclusive(locks.Mutex, cart(), core.WithWait(wait), httplock.FailOpen())
				fail(srv)
				// go-redis cannot close a client while a command waits for a frozen server, and locks try for
				// seconds to take back what they may have got.
				t.Cleanup(srv.Restart)
				a := refused(t, closed)
				a.Want(t, http.StatusServiceUnavailable)
				p := a.Problem(t)
				if p.Code != httplock.CodeLockUnavailable || !p.Retryable || p.RetryAfter < 1 || p.RetryAfter > 5 {
					t.Errorf("problem %+v", p)
				}
				site := httpkit.Serve(t, open(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if _, locked := core.TokenFrom(r.Context()); locked || !httplock.Degraded(r.Context()) {
						t.Errorf("locked %v, degraded %v", locked, httplock.Degraded(r.Context()))
					}
					_, _ = io.Copy(w, r.Body)
				})))
				b := httpkit.Post(t.Context(), site, "ada", "7")
				b.Want(t, http.StatusOK)
				if b.Body != "pay" {
					t.Errorf("the handler read %q", b.Body)
				}
				if err := httpkit.Receive(t, watch.failed, "the hook"); err == nil || len(watch.acquired) > 0 {
					t.Errorf("failure %v, acquired %d times", err, len(watch.acquired))
				}
			})
		}
	}
}

// FailOpen is about outages only.
func TestFailOpenStillExcludes(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	guard := httplock.Exclusive(locks.Mutex, cart(), core.WithWait(0), httplock.FailOpen(), unhurried)
	hold(t, guard)
	refused(t, guard).Want(t, http.StatusConflict)
}

func TestDeadlineOfTheContextEndsTheWait(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	guard := httplock.Exclusive(locks.Mutex, cart(), core.WithWait(time.Hour))
	hold(t, guard)
	a := refused(t, func(next http.Handler) http.Handler {
		guarded := guard(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second) // in which Redis replies even to a busy machine
			defer cancel()
			guarded.ServeHTTP(w, r.WithContext(ctx))
		})
	})
	a.Want(t, http.StatusConflict)
}

func TestBuildErrors(t *testing.T) {
	t.Parallel()
	never := coretest.Unused(t)
	key := httplock.Constant("all")
	for name, test := range map[string]struct {
		strategy core.Strategy
		key      httplock.KeyFunc
		option   httplock.Option
		says     string
	}{
		"strategy":        {nil, key, nil, "strategy is nil"},
		"key":             {never, nil, nil, "key function is nil"},
		"methods":         {never, key, httplock.WithMethods(), "no methods"},
		"method":          {never, key, httplock.WithMethods("POST", ""), "a method is empty"},
		"wait":            {never, key, core.WithWait(-1), "WithWait(-1ns)"},
		"body":            {never, key, httplock.WithBodyLimit(-1), "negative body limit"},
		"lock option":     {never, key, core.WithTTL(0), "WithTTL(0s)"},
		"refusal handler": {never, key, httplock.WithRefusalHandler(nil), "WithRefusalHandler"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := httplock.NewExclusive(test.strategy, test.key, test.option)
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want one that says %q", err, test.says)
			}
			defer func() {
				if p, _ := recover().(error); p == nil || p.Error() != err.Error() {
					t.Errorf("panic %v, want %v", p, err)
				}
			}()
			httplock.Exclusive(test.strategy, test.key, test.option)
		})
	}
	if _, err := httplock.NewExclusive(never, key, nil); err != nil {
		t.Errorf("a nil option: %v", err)
	}
}

func TestNilHandlerPanicsWhenBuilt(t *testing.T) {
	t.Parallel()
	guard := httplock.Exclusive(coretest.Unused(t), httplock.Constant("all"))
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	guard(nil)
}
