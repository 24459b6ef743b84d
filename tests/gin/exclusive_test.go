package gin_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	ginlock "github.com/holdfast-go/holdfast/middleware/gin"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
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
	handler := func(*gin.Context) {
		now := inside.Add(1)
		for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
		}
		runtime.Gosched()
		runs.Add(1)
		inside.Add(-1)
	}
	var instances []*httptest.Server
	for range 2 {
		guard := ginlock.Exclusive(connect(), cart(), core.WithWait(patience), httplock.WithWaiters(100, 100))
		instances = append(instances, serve(t, router(guard, handler)))
	}
	const requests = 60
	var all sync.WaitGroup
	for i := range requests {
		all.Go(func() {
			if a := post(t.Context(), instances[i%2], "ada", "7"); a.err != nil || a.status != http.StatusOK {
				t.Errorf("status %d, error %v: %s", a.status, a.err, a.body)
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
	stage := newStage(t)
	srv := serve(t, router(ginlock.Exclusive(locks.Mutex, cart(), core.WithWait(patience)), stage.handle))
	var answers []<-chan answer
	for _, key := range [][2]string{{"ada", "7"}, {"ada", "8"}, {"bob", "7"}} {
		answers = append(answers, postAside(t.Context(), srv, key[0], key[1]))
	}
	for range answers {
		receive(t, stage.entered, "a run")
	}
	close(stage.leave)
	for _, a := range answers {
		receive(t, a, "an answer").want(t, http.StatusOK)
	}
}

func TestWaitsThenRuns(t *testing.T) {
	t.Parallel()
	stage, watch := newStage(t), newWatch()
	locks := newLocks(t, testkit.Start(t).Client(), watch.hooks())
	guard := ginlock.Exclusive(locks.Mutex, cart(), core.WithWait(patience))
	srv := serve(t, router(guard, stage.handle))
	first := postAside(t.Context(), srv, "ada", "7")
	receive(t, stage.entered, "the first run")
	second := postAside(t.Context(), srv, "ada", "7")
	awaitWaiter(t, locks, receive(t, watch.acquired, "the hook"))
	if len(stage.entered) > 0 {
		t.Fatal("the second request ran beside the first")
	}
	close(stage.leave)
	receive(t, first, "the first answer").want(t, http.StatusOK)
	receive(t, second, "the second answer").want(t, http.StatusOK)
}

// A client that has the answer may send its next request, to another instance, before the release behind that
// answer has reached Redis. It waits for that; the default is enough on a machine that is not overloaded, as the
// one that runs this test may be.
func TestSequentialClientIsNeverRefused(t *testing.T) {
	t.Parallel()
	redis := testkit.Start(t)
	relay := redis.Relay()
	relay.Delay(testkit.ToServer, 5*time.Millisecond)
	handler := func(c *gin.Context) {
		c.Header("Content-Length", "4")
		c.String(http.StatusOK, "done")
		c.Writer.Flush() // as a large answer would: the client has all of it before the release
	}
	var instances []*httptest.Server
	for _, locks := range []*core.Client{newLocks(t, relay.Client()), newLocks(t, redis.Client())} {
		srv := serve(t, router(ginlock.Exclusive(locks.Mutex, cart(), core.WithWait(patience)), handler))
		srv.Client().Transport.(*http.Transport).DisableKeepAlives = true
		instances = append(instances, srv)
	}
	refused := 0
	for i := range 200 {
		a := post(t.Context(), instances[i%2], "ada", "7")
		if a.err != nil {
			t.Fatal(a.err)
		}
		if a.status != http.StatusOK {
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
			outer := func(c *gin.Context) {
				defer func() {
					p := recover()
					outside <- p
					if p != nil {
						panic(p)
					}
				}()
				c.Next()
			}
			guard := ginlock.Exclusive(locks.Mutex, cart(), core.WithWait(patience))
			srv := serve(t, router(outer, guard, func(*gin.Context) { end() }))
			a := post(t.Context(), srv, "ada", name)
			if (a.err == nil) != (name == "return") {
				t.Errorf("status %d, error %v", a.status, a.err)
			}
			p := receive(t, outside, "the handler's end")
			if name == "abort" && p != any(http.ErrAbortHandler) || name == "panic" && p != any("handler") {
				t.Errorf("outside the guard the panic is %v", p)
			}
			awaitFree(t, locks, receive(t, watch.acquired, "the hook"))
		})
	}
}

func TestHandlerLearnsOfLostLease(t *testing.T) {
	t.Parallel()
	watch, cause := newWatch(), make(chan error, 1)
	locks := newLocks(t, testkit.Start(t).Client(), watch.hooks())
	entered := make(chan int64, 1)
	handler := func(c *gin.Context) {
		ctx := c.Request.Context()
		token, _ := core.TokenFrom(ctx)
		entered <- token
		<-ctx.Done()
		cause <- context.Cause(ctx)
	}
	guard := ginlock.Exclusive(locks.Mutex, cart(), core.WithWait(patience),
		core.WithTTL(6*time.Second))
	srv := serve(t, router(guard, handler))
	done := postAside(t.Context(), srv, "ada", "7")
	if token := receive(t, entered, "the run"); token <= 0 {
		t.Errorf("fencing token %d in the handler", token)
	}
	hash := receive(t, watch.acquired, "the hook")
	if ok, err := locks.ForceUnlock(t.Context(), "http:"+hash); !ok || err != nil {
		t.Fatalf("ForceUnlock = %v, %v", ok, err)
	}
	if err := receive(t, cause, "the end of the context"); !errors.Is(err, core.ErrLeaseLost) {
		t.Errorf("cause %v, want ErrLeaseLost", err)
	}
	if err := receive(t, watch.failed, "the hook"); !errors.Is(err, core.ErrLeaseLost) {
		t.Errorf("failure %v, want ErrLeaseLost", err)
	}
	receive(t, done, "the answer").want(t, http.StatusServiceUnavailable)
}

func TestGuardedTwiceEntersAgain(t *testing.T) {
	t.Parallel()
	watch, tokens := newWatch(), make(chan int64, 3)
	locks := newLocks(t, testkit.Start(t).Client(), watch.hooks())
	note := func(c *gin.Context) {
		token, _ := core.TokenFrom(c.Request.Context())
		tokens <- token
		c.Next()
	}
	outer := ginlock.Exclusive(locks.Mutex, cart(), core.WithWait(0), unhurried)
	inner := ginlock.Exclusive(locks.Mutex, cart(), core.WithWait(0), unhurried)
	after := func(c *gin.Context) {
		c.Next()
		note(c)
	}
	srv := serve(t, router(outer, note, after, inner, note))
	post(t.Context(), srv, "ada", "7").want(t, http.StatusOK)
	if a, b, c := <-tokens, <-tokens, <-tokens; a == 0 || a != b || a != c {
		t.Errorf("tokens %d, %d and %d after the inner guard, want the same", a, b, c)
	}
	awaitFree(t, locks, receive(t, watch.acquired, "the hook"))
}

// The chain that gin enters anew with the context of a guarded request is under its lock already.
func TestHandleContextEntersAgain(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	guard := ginlock.Exclusive(locks.Mutex, cart(), core.WithWait(0), unhurried)
	engine := gin.New()
	var outer, inner, after int64
	var restored bool
	engine.POST("/", guard, func(c *gin.Context) {
		outer, _ = core.TokenFrom(c.Request.Context())
		request := c.Request
		c.Request.URL.Path = "/again"
		engine.HandleContext(c)
		restored = c.Request == request
		after, _ = core.TokenFrom(c.Request.Context())
	})
	engine.POST("/again", guard, func(c *gin.Context) {
		inner, _ = core.TokenFrom(c.Request.Context())
		c.String(http.StatusAccepted, "again")
	})
	a := post(t.Context(), serve(t, engine), "ada", "7")
	a.want(t, http.StatusAccepted)
	if a.body != "again" || !restored {
		t.Errorf("body %q, request restored %v", a.body, restored)
	}
	if outer == 0 || inner != outer || after != outer {
		t.Errorf("tokens %d, %d and %d, want the same", outer, inner, after)
	}
}

func TestMethods(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	key := httplock.Constant("all")
	standard := ginlock.Exclusive(locks.Mutex, key, core.WithWait(0), unhurried)
	chosen := ginlock.Exclusive(locks.Mutex, key, core.WithWait(0), unhurried, httplock.WithMethods("GET", "PURGE"))
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
		for guard, guarded := range map[*gin.HandlerFunc]bool{&standard: test.standard, &chosen: test.chosen} {
			ran, locked := false, false
			engine := gin.New()
			engine.Handle(test.method, "/", *guard, func(c *gin.Context) {
				ran = true
				_, locked = core.TokenFrom(c.Request.Context())
			})
			engine.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(test.method, "/", nil))
			if !ran || locked != guarded {
				t.Errorf("%s: ran %v, guarded %v, want %v", test.method, ran, locked, guarded)
			}
		}
	}
}
