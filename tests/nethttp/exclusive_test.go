package nethttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/httpkit"
)

func TestOneAtATimeOverInstances(t *testing.T) {
	t.Parallel()
	one := testkit.Start(t)
	oneAtATime(t, func() core.Strategy { return newLocks(t, one.Client()).Mutex })
}

func TestOneAtATimeWithRedlock(t *testing.T) {
	t.Parallel()
	three := []*testkit.Server{testkit.Start(t), testkit.Start(t), testkit.Start(t)}
	oneAtATime(t, func() core.Strategy {
		nodes := []redis.UniversalClient{three[0].Client(), three[1].Client(), three[2].Client()}
		locks, err := core.NewRedlock(nodes, core.WithLogger(nil), core.WithNodeTimeout(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = locks.Close() })
		return locks.Mutex
	})
}

// oneAtATime sends requests of one key to two instances.
func oneAtATime(t *testing.T, connect func() core.Strategy) {
	t.Helper()
	var inside, most, runs atomic.Int32
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		now := inside.Add(1)
		for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
		}
		runtime.Gosched()
		runs.Add(1)
		inside.Add(-1)
	})
	var instances []*httptest.Server
	for range 2 {
		guard := httplock.Exclusive(connect(), cart(), core.WithWait(httpkit.Patience), httplock.WithWaiters(100, 100))
		instances = append(instances, httpkit.Serve(t, guard(handler)))
	}
	const requests = 60
	var all sync.WaitGroup
	for i := range requests {
		all.Go(func() {
			if a := httpkit.Post(t.Context(), instances[i%2], "ada", "7"); a.Err != nil || a.Status != http.StatusOK {
				t.Errorf("status %d, error %v: %s", a.Status, a.Err, a.Body)
			}
		})
	}
	all.Wait()
	if most.Load() != 1 || runs.Load() != requests {
		t.Errorf("%d handlers at once, want 1; %d runs, want %d", most.Load(), runs.Load(), requests)
	}
}

func TestOtherKeysRunBesides(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	stage := httpkit.NewStage(t)
	srv := httpkit.Serve(t, httplock.Exclusive(locks.Mutex, cart(), core.WithWait(httpkit.Patience))(stage))
	var answers []<-chan httpkit.Answer
	for _, key := range [][2]string{{"ada", "7"}, {"ada", "8"}, {"bob", "7"}} {
		answers = append(answers, httpkit.PostAside(t.Context(), srv, key[0], key[1]))
	}
	for range answers {
		httpkit.Receive(t, stage.Entered, "a run")
	}
	close(stage.Leave)
	for _, a := range answers {
		httpkit.Receive(t, a, "an answer").Want(t, http.StatusOK)
	}
}

func TestWaitsThenRuns(t *testing.T) {
	t.Parallel()
	stage, watch := httpkit.NewStage(t), newWatch()
	locks := newLocks(t, testkit.Start(t).Client(), watch.hooks())
	srv := httpkit.Serve(t, httplock.Exclusive(locks.Mutex, cart(), core.WithWait(httpkit.Patience))(stage))
	first := httpkit.PostAside(t.Context(), srv, "ada", "7")
	httpkit.Receive(t, stage.Entered, "the first run")
	second := httpkit.PostAside(t.Context(), srv, "ada", "7")
	awaitWaiter(t, locks, httpkit.Receive(t, watch.acquired, "the hook"))
	if len(stage.Entered) > 0 {
		t.Fatal("the second request ran beside the first")
	}
	close(stage.Leave)
	httpkit.Receive(t, first, "the first answer").Want(t, http.StatusOK)
	httpkit.Receive(t, second, "the second answer").Want(t, http.StatusOK)
}

// A client that has the answer may send its next request, to another instance, before the release behind that
// answer has reached Redis. It waits for that; the default is enough on a machine that is not overloaded, as the
// one that runs this test may be.
func TestSequentialClientIsNeverRefused(t *testing.T) {
	t.Parallel()
	redis := testkit.Start(t)
	relay := redis.Relay()
	relay.Delay(testkit.ToServer, 5*time.Millisecond)
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "4")
		_, _ = io.WriteString(w, "done")
		w.(http.Flusher).Flush() // as a large answer would: the client has all of it before the release
	})
	var instances []*httptest.Server
	for _, locks := range []*core.Client{newLocks(t, relay.Client()), newLocks(t, redis.Client())} {
		srv := httpkit.Serve(t, httplock.Exclusive(locks.Mutex, cart(), core.WithWait(httpkit.Patience))(handler))
		srv.Client().Transport.(*http.Transport).DisableKeepAlives = true
		instances = append(instances, srv)
	}
	refused := 0
	for i := range 200 {
		a := httpkit.Post(t.Context(), instances[i%2], "ada", "7")
		if a.Err != nil {
			t.Fatal(a.Err)
		}
		if a.Status != http.StatusOK {
			refused++
		}
	}
	if refused != 0 {
		t.Errorf("%d of 200 sequential requests refused", refused)
	}
}

func TestReleasedHoweverTheHandlerEnds(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	for name, end := range map[string]func(){
		"return": func() {},
		"panic":  func() { panic("handler") },
		"abort":  func() { panic(http.ErrAbortHandler) },
		"goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			watch, outside := newWatch(), make(chan any, 1)
			locks := newLocks(t, rdb, watch.hooks())
			guarded := httplock.Exclusive(locks.Mutex, cart(), core.WithWait(httpkit.Patience))(
				http.HandlerFunc(func(http.ResponseWriter, *http.Request) { end() }))
			srv := httpkit.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer func() {
					p := recover()
					outside <- p
					if p != nil {
						panic(p)
					}
				}()
				guarded.ServeHTTP(w, r)
			}))
			a := httpkit.Post(t.Context(), srv, "ada", name)
			if (a.Err == nil) != (name == "return") {
				t.Errorf("status %d, error %v", a.Status, a.Err)
			}
			p := httpkit.Receive(t, outside, "the handler's end")
			if name == "abort" && p != any(http.ErrAbortHandler) || name == "panic" && p != any("handler") {
				t.Errorf("outside the guard the panic is %v", p)
			}
			awaitFree(t, locks, httpkit.Receive(t, watch.acquired, "the hook"))
		})
	}
}

func TestHandlerLearnsOfLostLease(t *testing.T) {
	t.Parallel()
	watch, cause := newWatch(), make(chan error, 1)
	locks := newLocks(t, testkit.Start(t).Client(), watch.hooks())
	entered := make(chan int64, 1)
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		token, _ := core.TokenFrom(r.Context())
		entered <- token
		<-r.Context().Done()
		cause <- context.Cause(r.Context())
	})
	guard := httplock.Exclusive(locks.Mutex, cart(), patient, core.WithTTL(6*time.Second))
	srv := httpkit.Serve(t, guard(handler))
	done := httpkit.PostAside(t.Context(), srv, "ada", "7")
	if token := httpkit.Receive(t, entered, "the run"); token <= 0 {
		t.Errorf("fencing token %d in the handler", token)
	}
	hash := httpkit.Receive(t, watch.acquired, "the hook")
	if ok, err := locks.ForceUnlock(t.Context(), "http:"+hash); !ok || err != nil {
		t.Fatalf("ForceUnlock = %v, %v", ok, err)
	}
	if err := httpkit.Receive(t, cause, "the end of the context"); !errors.Is(err, core.ErrLeaseLost) {
		t.Errorf("cause %v, want ErrLeaseLost", err)
	}
	if err := httpkit.Receive(t, watch.failed, "the hook"); !errors.Is(err, core.ErrLeaseLost) {
		t.Errorf("failure %v, want ErrLeaseLost", err)
	}
	httpkit.Receive(t, done, "the answer").Want(t, http.StatusServiceUnavailable)
}

func TestGuardedTwiceEntersAgain(t *testing.T) {
	t.Parallel()
	watch, tokens := newWatch(), make(chan int64, 2)
	locks := newLocks(t, testkit.Start(t).Client(), watch.hooks())
	guard := httplock.Exclusive(locks.Mutex, cart(), core.WithWait(0), unhurried)
	note := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			token, _ := core.TokenFrom(r.Context())
			tokens <- token
			next.ServeHTTP(w, r)
		})
	}
	inner := httplock.Exclusive(locks.Mutex, cart(), core.WithWait(0), unhurried)
	srv := httpkit.Serve(t, guard(note(inner(note(http.NotFoundHandler())))))
	httpkit.Post(t.Context(), srv, "ada", "7").Want(t, http.StatusNotFound)
	if a, b := <-tokens, <-tokens; a == 0 || a != b {
		t.Errorf("tokens %d and %d, want the same", a, b)
	}
	awaitFree(t, locks, httpkit.Receive(t, watch.acquired, "the hook"))
}

func TestMethods(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	key := httplock.Constant("all")
	standard := httplock.Exclusive(locks.Mutex, key, core.WithWait(0), unhurried)
	chosen := httplock.Exclusive(locks.Mutex, key, core.WithWait(0), unhurried, httplock.WithMethods("GET", "PURGE"))
	for _, test := range []struct {
		method           string
		standard, chosen bool
	}{
		{"GET", false, true},
		{"HEAD", false, false},
		{"OPTIONS", false, false},
		{"TRACE", false, false},
		{"POST", true, false},
		{"PUT", true, false},
		{"PATCH", true, false},
		{"DELETE", true, false},
		{"PURGE", true, true},
	} {
		for guard, guarded := range map[*func(http.Handler) http.Handler]bool{
			&standard: test.standard, &chosen: test.chosen,
		} {
			locked := false
			h := (*guard)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, locked = core.TokenFrom(r.Context())
			}))
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(test.method, "/", nil))
			if locked != guarded {
				t.Errorf("%s: guarded %v, want %v", test.method, locked, guarded)
			}
		}
	}
}
