package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// send sends an errand to a replica and checks the code of the answer.
func send(t *testing.T, r *replica, user string, e errand, code string) answer {
	t.Helper()
	c := crowd{client: http.DefaultClient}
	a, err := c.post(t.Context(), r.url, user, e)
	if err != nil || a.code != code {
		t.Errorf("%s by %.20q: %q, %v, want %q", e.path, user, a.code, err, code)
	}
	return a
}

// named returns the name under which a guard knows requests of these keys.
func named(t *testing.T, keys ...httplock.Key) string {
	t.Helper()
	key, err := httplock.Join(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return "http:" + key.Hash()
}

// must is for keys whose arguments are right.
func must(key httplock.Key, err error) httplock.Key {
	if err != nil {
		panic(err)
	}
	return key
}

// take holds a lock as if another replica did.
func take(t *testing.T, s *site, name string) (release func()) {
	t.Helper()
	lease, err := s.replicas[2].locks.Mutex(name).Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := lease.Unlock(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

func TestCheckout(t *testing.T) {
	t.Parallel()
	cfg := small
	cfg.patience = 5 * time.Second
	s := open(t, cfg)
	checkout := errand{path: "/cart/7/checkout", done: codePriced}
	send(t, s.replicas[0], "", checkout, httplock.CodeScopeRequired)
	release := take(t, s, named(t, must(httplock.PrincipalKey("alice")), must(httplock.PathKey("/cart/{id}", "id", "7"))))
	send(t, s.replicas[0], "alice", checkout, httplock.CodeLockConflict)
	send(t, s.replicas[0], "bob", checkout, codePriced) // the cart 7 of another user
	release()
	for _, want := range []string{`"quote":1,`, `"quote":2,`} {
		if a := send(t, s.replicas[1], "alice", checkout, codePriced); !strings.Contains(a.body, want) {
			t.Errorf("got %s, want %s in it", a.body, want)
		}
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	cfg := small
	cfg.stock, cfg.patience = 1, 5*time.Second
	s := open(t, cfg)
	one, two := s.replicas[0], s.replicas[1]
	order := errand{path: "/orders", done: codeOrdered}
	send(t, one, "", order, httplock.CodeScopeRequired)
	send(t, one, strings.Repeat("x", 600), order, httplock.CodeScopeRequired)

	record := named(t, must(httplock.RouteKey("POST", "POST /orders")), must(httplock.PrincipalKey("alice")))
	attempt, err := s.replicas[2].locks.Once(record).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	send(t, one, "alice", order, httplock.CodeRequestInProgress)
	if err := attempt.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	release := take(t, s, "stock:"+item)
	send(t, one, "alice", order, codeBusy)
	release()

	send(t, one, "alice", order, codeOrdered) // what was refused did not count
	send(t, two, "alice", order, httplock.CodeAlreadyCompleted)
	send(t, two, "bob", order, codeSoldOut)
	send(t, two, "bob", order, codeSoldOut) // this time without the stock's lock
}

// The stock's lock may be lost after the order was committed, so that its user is told that something went wrong.
func TestOrderCountsOnceCommitted(t *testing.T) {
	t.Parallel()
	cfg := small
	cfg.guards = func(locks *core.Client, cfg config) guards {
		g := locked(locks, cfg)
		g.stock = func(ctx context.Context, _ string, work func(context.Context) error) error {
			return errors.Join(work(ctx), core.ErrLeaseLost)
		}
		return g
	}
	s := open(t, cfg)
	order := errand{path: "/orders", done: codeOrdered}
	send(t, s.replicas[0], "alice", order, "lock-lost")
	send(t, s.replicas[1], "alice", order, httplock.CodeAlreadyCompleted)
}

func TestPayment(t *testing.T) {
	t.Parallel()
	s := open(t, small)
	one, two := s.replicas[0], s.replicas[1]
	send(t, one, "alice", errand{path: "/orders", done: codeOrdered}, codeOrdered)
	payment := errand{path: "/payments", body: `{"order":1}`, key: `"k"`, done: codePaid}
	edited := func(edit func(*errand)) errand {
		e := payment
		edit(&e)
		return e
	}
	send(t, one, "alice", edited(func(e *errand) { e.key = "" }), httplock.CodeKeyRequired)
	send(t, one, "bob", payment, "no-such-order") // the same key, but his own
	send(t, one, "alice", edited(func(e *errand) { e.key, e.body = `"j"`, "?" }), "malformed")

	first := send(t, one, "alice", payment, codePaid)
	if again := send(t, two, "alice", payment, codeReplayed); again.body != first.body {
		t.Errorf("second answer %q, want the first: %q", again.body, first.body)
	}
	send(t, two, "alice", edited(func(e *errand) { e.body = `{"order":2}` }), httplock.CodeKeyReused)
}

// A client that hangs up must not stop the charge, and finds the receipt when it comes back.
func TestPaymentThatIsBrokenOff(t *testing.T) {
	t.Parallel()
	inside := make(chan struct{})
	cfg := small
	cfg.guards = func(locks *core.Client, cfg config) guards {
		g := locked(locks, cfg)
		guard := g.payment
		g.payment = func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				gone := r.Context().Done()
				guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					close(inside)
					<-gone
					next.ServeHTTP(w, r)
				})).ServeHTTP(w, r)
			})
		}
		return g
	}
	s := open(t, cfg)
	send(t, s.replicas[0], "alice", errand{path: "/orders", done: codeOrdered}, codeOrdered)
	payment := errand{path: "/payments", body: `{"order":1}`, key: `"k"`, done: codePaid}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-inside
		cancel()
	}()
	c := crowd{client: http.DefaultClient}
	if a, err := c.post(ctx, s.replicas[0].url, "alice", payment); err == nil {
		t.Fatalf("got %+v before the client hung up", a)
	}
	send(t, s.replicas[1], "alice", payment, codeReplayed)
	if got, err := s.replicas[1].shop.store.audit(t.Context(), item, cfg.stock); err != nil || got.charges != 1 {
		t.Errorf("%d charges, %v, want 1", got.charges, err)
	}
}
