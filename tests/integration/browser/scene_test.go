package browser_test

import (
	"context"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// scene fills a Redis with what a shop would have: locks of all kinds with waiters, records, and jobs with runs.
type scene struct {
	t      *testing.T
	server *testkit.Server
	locks  map[string]*core.Client // by instance
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{t: t, server: testkit.Start(t), locks: make(map[string]*core.Client)}
	for _, instance := range []string{"web-1:4711", "web-2:4711", "worker-1:97"} {
		s.locks[instance] = newClient(t, s.server, core.WithInstance(instance))
	}
	s.fillLocks()
	s.fillRecords()
	s.fillJobs()
	return s
}

// lock acquires a lock that stays held.
func (s *scene) lock(l *core.Lock, opts ...core.LockOption) {
	s.t.Helper()
	if _, err := l.TryLock(context.Background(), opts...); err != nil {
		s.t.Fatal(err)
	}
}

// wait lets goroutines wait until the test ends.
func (s *scene) wait(lockers ...*core.Lock) {
	s.t.Helper()
	for _, l := range lockers {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = l.Lock(ctx)
		}()
		s.t.Cleanup(func() { cancel(); <-done })
	}
}

func (s *scene) fillLocks() {
	s.t.Helper()
	one, two, worker := s.locks["web-1:4711"], s.locks["web-2:4711"], s.locks["worker-1:97"]
	s.lock(one.Mutex("order:1042"))
	s.lock(two.Fair("user:ada:checkout"))
	s.wait(one.Fair("user:ada:checkout"), worker.Fair("user:ada:checkout"))
	s.lock(one.Semaphore("payment-gateway", 3), core.WithPermits(2))
	s.lock(two.Semaphore("payment-gateway", 3))
	s.wait(worker.Semaphore("payment-gateway", 3))
	s.lock(one.Read("catalogue"))
	s.lock(two.Read("catalogue"))
	s.lock(worker.Write("stock:7"), core.WithFixedTTL(90*time.Second))
	s.lock(two.Mutex("cart:88231"))
	s.lock(worker.Mutex("import:suppliers"))
	if _, err := worker.Election("scheduler", core.WithValue("10.0.0.7:8080")).Campaign(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.wait(one.Mutex("order:1042"))
}

func (s *scene) fillRecords() {
	s.t.Helper()
	locks, ctx := s.locks["web-1:4711"], s.t.Context()
	for _, key := range []string{"order:ada", "order:grace", "receipt:1041"} {
		if _, err := locks.Once(key).Do(ctx, func(context.Context) ([]byte, error) { return []byte("order 1041"), nil }); err != nil {
			s.t.Fatal(err)
		}
	}
	attempt, err := locks.Once("payment:1042", core.WithFailurePolicy(core.HoldFailures)).Begin(ctx)
	if err == nil {
		err = attempt.Hold(ctx, "the gateway did not answer within 30 s")
	}
	if err == nil {
		_, err = locks.Once("export:2026-11").Begin(ctx)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) fillJobs() {
	s.t.Helper()
	locks := s.locks["worker-1:97"]
	c := cron.New(cron.WithLocation(time.UTC))
	for name, spec := range map[string]string{"nightly-report": "0 3 29 2 *", "expire-carts": "@every 1s"} {
		_, err := cronlock.AddFunc(c, locks, spec, name, func(context.Context) error { return nil },
			cronlock.WithService("shop"))
		if err != nil {
			s.t.Fatal(err)
		}
	}
	c.Start()
	s.t.Cleanup(func() { <-c.Stop().Done() })
	testkit.Eventually(s.t, patience, "the jobs and some runs", func() bool {
		runs, err := cronlock.Job(locks, "expire-carts").History(s.t.Context())
		return err == nil && len(runs) > 3 && cronlock.Job(locks, "nightly-report").Pause(s.t.Context(), "ada") == nil
	})
}
