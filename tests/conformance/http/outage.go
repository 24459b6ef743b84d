package httpconformance

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/httpkit"
)

var outageTests = tests{
	"NoRedisRefuses":             testNoRedis,
	"NoRedisFailsOpenIfAsked":    testFailOpen,
	"FrozenRedisRefusesInTime":   testFrozenAtBegin,
	"RedisDiesInTheHandler":      testDiesInHandler,
	"RedisDiesAndLosesAll":       testLosesAll,
	"RedisIsFrozenAtTheEnd":      testFrozenAtEnd,
	"LeaseIsLostWhileRedisIs":    testLeaseLostInOutage,
	"ConflictsDoNotOpenTheGuard": testOpenGuardRefuses,
	"HeldAndThenSilent":          testHeldThenSilent,
	"FullRedisOpensNothing":      testFullRedis,
	"MissingRightOpensNothing":   testMissingRight,
	"WrongPasswordOpensNothing":  testWrongPassword,
}

// outage is a Redis of the test's own, and a client of it.
func outage(t testing.TB, opts ...testkit.Option) (*testkit.Server, *core.Client) {
	t.Helper()
	redis, locks, _ := outageTold(t, opts...)
	return redis, locks
}

// outageTold is outage with hooks.
func outageTold(t testing.TB, opts ...testkit.Option) (*testkit.Server, *core.Client, *watch) {
	t.Helper()
	redis, watch := testkit.Start(t, opts...), newWatch()
	return redis, newLocks(t, redis.Client(), watch.hooks()), watch
}

// took logs how long something took that must end by itself.
func took(t testing.TB, what string, do func() answer) answer {
	t.Helper()
	began := time.Now()
	a := do()
	t.Logf("%s: %v", what, time.Since(began).Round(time.Millisecond))
	return a
}

// insist repeats a request until Redis has replied: a busy machine may need more time than the guard gives it. The
// attempt of a request that was refused for want of an answer may be in Redis until its release arrives there. The
// repeated request meets that attempt as one in progress, or its lock as held.
func (x *site) insist(r request) answer {
	deadline := time.Now().Add(patience)
	for refused := false; ; {
		a := x.do(r)
		refused = refused || a.status == http.StatusServiceUnavailable
		again := a.status == http.StatusServiceUnavailable ||
			refused && a.status == http.StatusConflict && (strings.Contains(a.body, httplock.CodeRequestInProgress) ||
				strings.Contains(a.body, httplock.CodeLockConflict))
		if !again || time.Now().After(deadline) {
			return a
		}
	}
}

// enter repeats a request until it runs.
func (x *site) enter(t testing.TB, stage *stage, r request) <-chan answer {
	t.Helper()
	for {
		done := x.aside(t.Context(), r)
		select {
		case <-stage.entered:
			return done
		case a := <-done:
			a.refused(t, http.StatusServiceUnavailable, httplock.CodeLockUnavailable)
		}
	}
}

func testNoRedis(t *testing.T, s *suite) {
	redis, locks := outage(t)
	runs := &counter{}
	sites := map[string]*site{
		"exclusive":       s.mount(t, runs, must(t)(s.Exclusive(locks.Mutex, ByUser))),
		"once":            s.mount(t, runs, must(t)(s.Once(locks, ByUser))),
		"idempotent":      s.mount(t, runs, must(t)(s.Idempotent(locks, ByUser))),
		"once that waits": s.mount(t, runs, must(t)(s.Once(locks, ByUser, core.WithWait(500*time.Millisecond)))),
	}
	redis.Kill()
	began, answers := time.Now(), make(map[string]<-chan answer)
	for name, site := range sites {
		answers[name] = site.aside(t.Context(), request{user: "ada", key: "k"})
	}
	for name, a := range answers {
		receive(t, a, name).refused(t, http.StatusServiceUnavailable, httplock.CodeLockUnavailable)
		t.Logf("%s: within %v", name, time.Since(began).Round(time.Millisecond))
	}
	runs.ran(t, 0)
}

// testFailOpen: the handler runs, and knows what it lacks.
func testFailOpen(t *testing.T, s *suite) {
	redis, locks, watch := outageTold(t)
	redis.Kill()
	runs := &counter{}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, token := core.TokenFrom(r.Context())
		if !httplock.Degraded(r.Context()) || token || httpkit.Attempt(r.Context()) != 0 {
			t.Errorf("degraded %v, token %v, attempt %d in a run without guard",
				httplock.Degraded(r.Context()), token, httpkit.Attempt(r.Context()))
		}
		runs.ServeHTTP(w, r)
	})
	// Without Redis each request fails after its tries. A busy machine must not end it by time before the first of them.
	want, patient := int64(0), httplock.WithAskTimeout(patience)
	for name, build := range s.builders() {
		site := s.mount(t, h, must(t)(build(locks, ByUser, httplock.FailOpen(), patient)))
		for _, user := range []string{"ada", "bob"} {
			a := took(t, name, func() answer { return site.do(request{user: user, key: "k"}) })
			a.want(t, http.StatusCreated)
			want++
			runs.ran(t, want)
			f, end := receive(t, watch.failed, "the hook"), receive(t, watch.finished, "the end")
			if f.Kind != core.IncidentUnguarded || f.Err == nil || f.Label != label {
				t.Errorf("%s: hook told %+v", name, f)
			}
			if end.Work != f.Work || end.Token != 0 || end.Attempt != 0 || end.Err != nil {
				t.Errorf("%s: hook told %+v", name, end)
			}
		}
		if len(watch.acquired) != 0 {
			t.Errorf("%s: something was acquired without Redis", name)
		}
	}
}

// testFrozenAtBegin: what arrives at Redis after its sender has given up claims nothing.
func testFrozenAtBegin(t *testing.T, s *suite) {
	for name, wait := range map[string]time.Duration{"asks": 0, "waits": 300 * time.Millisecond} {
		redis, locks := outage(t)
		runs := &counter{}
		site := s.mount(t, runs, must(t)(s.Idempotent(locks, ByUser,
			httplock.WithAskTimeout(300*time.Millisecond), core.WithWait(wait))))
		site.insist(request{user: "ada", key: "warm"}).want(t, http.StatusCreated)
		redis.Pause()
		a := took(t, name, func() answer { return site.do(request{user: "ada", key: "k"}) })
		a.refused(t, http.StatusServiceUnavailable, httplock.CodeLockUnavailable)
		runs.ran(t, 1)
		redis.Resume()
		testkit.Eventually(t, patience, "a run after the thaw", func() bool {
			return site.do(request{user: "ada", key: "k"}).status == http.StatusCreated
		})
		site.insist(request{user: "ada", key: "k"}).replayed(t, http.StatusCreated, "2")
		runs.ran(t, 2)
	}
}

// testDiesInHandler: Redis comes back with what it knew. Nothing runs twice, and the end is recorded late.
func testDiesInHandler(t *testing.T, s *suite) {
	redis, locks, watch := outageTold(t, testkit.AOF())
	stage := newStage(t)
	site := s.mount(t, stage, must(t)(s.Idempotent(locks, ByUser,
		core.WithFailurePolicy(core.HoldFailures), httplock.WithFinishTimeout(500*time.Millisecond))))
	r := request{user: "ada", key: "k", body: "order"}
	first := site.enter(t, stage, r)
	redis.Kill()
	close(stage.leave)
	took(t, "answer without record", func() answer { return receive(t, first, "the answer") }).
		fresh(t, http.StatusCreated, "done")
	if f := receive(t, watch.finished, "the end"); f.State != core.StateCompleted {
		t.Errorf("hook told %+v, want it completed", f)
	}
	if f := receive(t, watch.failed, "the failure"); f.Kind != core.IncidentUnrecorded {
		t.Errorf("hook told %+v, want that the end was not recorded", f)
	}
	a := took(t, "retry without Redis", func() answer { return site.do(r) })
	a.refused(t, http.StatusServiceUnavailable, httplock.CodeLockUnavailable)
	redis.Restart()
	began := time.Now()
	testkit.Eventually(t, patience, "the record to be written", func() bool {
		a := site.do(r)
		return a.status == http.StatusCreated
	})
	t.Logf("record written %v after the restart", time.Since(began))
	site.insist(r).replayed(t, http.StatusCreated, "done")
	if len(stage.entered) != 0 {
		t.Error("the handler ran again")
	}
}

// testLosesAll: of a Redis that comes back empty the end of the run makes a record anew.
func testLosesAll(t *testing.T, s *suite) {
	redis, locks := outage(t)
	stage := newStage(t)
	site := s.mount(t, stage, must(t)(s.Idempotent(locks, ByUser)))
	r := request{user: "ada", key: "k", body: "order"}
	first := site.enter(t, stage, r)
	redis.Restart()
	close(stage.leave)
	receive(t, first, "the answer").fresh(t, http.StatusCreated, "done")
	awaitState(t, newLocks(t, redis.Client()), idempotentKey(t, r.user, "k"), core.StateCompleted)
	testkit.Eventually(t, patience, "a connection", func() bool {
		return site.do(r).status != http.StatusServiceUnavailable
	})
	site.insist(r).replayed(t, http.StatusCreated, "done")
	r.body = "another"
	site.insist(r).refused(t, http.StatusUnprocessableEntity, httplock.CodeKeyReused)
	if len(stage.entered) != 0 {
		t.Error("the handler ran again")
	}
}

// testFrozenAtEnd: the answer is not kept back for longer than the option says.
func testFrozenAtEnd(t *testing.T, s *suite) {
	redis, locks := outage(t)
	stage := newStage(t)
	site := s.mount(t, stage, must(t)(s.Idempotent(locks, ByUser, httplock.WithFinishTimeout(300*time.Millisecond))))
	r := request{user: "ada", key: "k"}
	first := site.enter(t, stage, r)
	redis.Pause()
	close(stage.leave)
	took(t, "answer without record", func() answer { return receive(t, first, "the answer") }).
		fresh(t, http.StatusCreated, "done")
	redis.Resume()
	testkit.Eventually(t, patience, "the record", func() bool { return site.do(r).status == http.StatusCreated })
	site.insist(r).replayed(t, http.StatusCreated, "done")
	if len(stage.entered) != 0 {
		t.Error("the handler ran again")
	}
}

// testLeaseLostInOutage: a handler that can stop is told to.
func testLeaseLostInOutage(t *testing.T, s *suite) {
	redis, locks, watch := outageTold(t)
	entered, causes := make(chan struct{}, 1), make(chan error, 1)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		<-r.Context().Done()
		causes <- context.Cause(r.Context())
		w.WriteHeader(http.StatusInternalServerError)
	})
	site := s.mount(t, h, must(t)(s.Once(locks, ByUser, httplock.WithAskTimeout(patience),
		core.WithTTL(time.Second), httplock.WithFinishTimeout(200*time.Millisecond))))
	done := site.aside(t.Context(), request{user: "ada"})
	receive(t, entered, "the run")
	redis.Kill()
	if cause := receive(t, causes, "the end of the context"); !errors.Is(cause, core.ErrLeaseLost) {
		t.Errorf("cause %v, want that the lease was lost", cause)
	}
	receive(t, done, "the answer").want(t, http.StatusInternalServerError)
	if f := receive(t, watch.failed, "the hook"); f.Kind != core.IncidentLost || !errors.Is(f.Err, core.ErrLeaseLost) {
		t.Errorf("hook told %+v, want a lost lease", f)
	}
}

// testOpenGuardRefuses: only an outage opens a guard.
func testOpenGuardRefuses(t *testing.T, s *suite) {
	r := request{user: "open"}
	s.whileRunning(t, r, s.once(t, httplock.FailOpen())).
		refused(t, http.StatusConflict, httplock.CodeRequestInProgress)
	s.whileRunning(t, r, s.exclusive(t, httplock.FailOpen(), core.WithWait(0))).
		refused(t, http.StatusConflict, httplock.CodeLockConflict)
}

// testHeldThenSilent: Redis replied that the key is held, and is silent for the rest of the wait. FailOpen opens nothing.
func testHeldThenSilent(t *testing.T, s *suite) {
	for name, build := range s.builders() {
		redis := testkit.Start(t)
		relay := redis.Relay()
		silent := func(err error) {
			if err != nil {
				relay.Hold(testkit.Both)
			}
		}
		locks := newLocks(t, relay.Client(), core.WithHooks(core.Hooks{
			AcquireEnd: func(_ context.Context, end core.AcquireEnd) { silent(end.Err) },
			BeginEnd:   func(_ context.Context, end core.BeginEnd) { silent(end.Err) },
		}))
		t.Cleanup(relay.Heal) // so that the client can close soon
		stage := newStage(t)
		first := s.mount(t, stage, must(t)(build(newLocks(t, redis.Client()), ByUser, unhurried(nil)...))).
			aside(t.Context(), request{user: "ada", key: "k"})
		receive(t, stage.entered, "the run")
		runs := &counter{}
		second := s.mount(t, runs, must(t)(build(locks, ByUser, httplock.FailOpen(),
			httplock.WithAskTimeout(patience), core.WithWait(500*time.Millisecond))))
		a := took(t, name, func() answer { return second.do(request{user: "ada", key: "k"}) })
		if a.status != http.StatusConflict {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
		runs.ran(t, 0)
		close(stage.leave)
		receive(t, first, "the first answer")
	}
}

// testFullRedis: what one user can bring about, by filling Redis, gives no user two orders.
func testFullRedis(t *testing.T, s *suite) {
	redis := testkit.Start(t)
	if err := redis.Client().ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	opensNothing(t, s, redis.Client(), "OOM")
}

// testMissingRight: a mistake in the rights does not switch the guards off.
func testMissingRight(t *testing.T, s *suite) {
	server := testkit.Start(t)
	admin := server.Client()
	err := admin.Do(t.Context(), "ACL", "SETUSER", "weak", "on", ">weak", "~*", "&*", "+@all", "-eval", "-evalsha").Err()
	if err != nil {
		t.Fatal(err)
	}
	opensNothing(t, s, server.Client(as("weak", "weak")), "NOPERM")
}

// testWrongPassword: nor does a wrong password.
func testWrongPassword(t *testing.T, s *suite) {
	server := testkit.Start(t)
	opensNothing(t, s, server.Client(as("nobody", "wrong")), "WRONGPASS")
}

func as(user, password string) func(*redis.Options) {
	return func(o *redis.Options) { o.Username, o.Password = user, password }
}

// opensNothing wants guards that fail open to refuse what Redis has replied with that error.
func opensNothing(t *testing.T, s *suite, rdb redis.UniversalClient, reply string) {
	t.Helper()
	runs, watch := &counter{}, newWatch()
	locks := newLocks(t, rdb, watch.hooks())
	for name, build := range s.builders() {
		site := s.mount(t, runs, must(t)(build(locks, ByUser, unhurried(nil, asking, httplock.FailOpen())...)))
		for range 2 {
			site.do(request{user: "ada", key: "k"}).
				refused(t, http.StatusServiceUnavailable, httplock.CodeLockUnavailable)
			if c := receive(t, watch.refused, "the refusal"); !strings.Contains(c.Error(), reply) {
				t.Errorf("%s: refused because of %v, want %s", name, c, reply)
			}
		}
	}
	runs.ran(t, 0)
}

// asking has a guard ask once, for as long as it has patience, rather than wait for a short time.
var asking = core.WithWait(0)

// builders are the constructors of all guards. The lock of Exclusive is a Mutex of the client.
func (s *suite) builders() map[string]builder {
	return map[string]builder{
		"once": s.Once, "idempotent": s.Idempotent,
		"exclusive": func(c *core.Client, k Key, opts ...httplock.Option) (Guard, error) {
			return s.Exclusive(c.Mutex, k, opts...)
		},
	}
}
