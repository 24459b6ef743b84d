package asynq_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// rounds is a handler whose runs each continue until the test lets one end.
type rounds struct {
	*shop
	one chan struct{} // ends one run for each value

	mu    sync.Mutex
	order []string
}

func newRounds(s *shop) *rounds { return &rounds{shop: s, one: make(chan struct{})} }

func (r *rounds) process(ctx context.Context, _ *asynq.Task) error {
	id, _ := asynq.GetTaskID(ctx)
	r.mu.Lock()
	r.order = append(r.order, id)
	r.mu.Unlock()
	r.effects.begin("7")
	defer r.effects.end("7", true)
	<-r.one
	return nil
}

// await returns once so many tasks run, of the number that has begun in all.
func (r *rounds) await(running, begun int) {
	r.t.Helper()
	testkit.Eventually(r.t, 2*within, fmt.Sprintf("%d tasks to run, of %d that began", running, begun), func() bool {
		r.effects.mu.Lock()
		defer r.effects.mu.Unlock()
		return r.effects.running["7"] == running && r.effects.running["7"]+r.effects.done["7"] == begun
	})
}

// begun returns the tasks in the order in which they began.
func (r *rounds) begun() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.order)
}

// TestLineOfALimitKeepsPermitsBusy: five tasks of a key run at once, and each that ends is followed by another one,
// although asynq looks as seldom as by default.
func TestLineOfALimitKeepsPermitsBusy(t *testing.T) {
	t.Parallel()
	const n, tasks = 5, 24
	for name, servers := range map[string][]int{"one": {10}, "few workers": {6}, "two": {10, 10}, "one worker each": {1, 1, 1, 1, 1, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRounds(newShop(t))
			var bounces deferrals
			for i := range tasks {
				r.enqueue(receipt("7"), asynq.TaskID(fmt.Sprintf("task-%03d", i)), asynq.MaxRetry(1))
			}
			for _, workers := range servers {
				guard := asynqlock.Exclusive(r.newLocks(bounces.hooks()).Limit(n), asynqlock.ByPayload("order"),
					asynqlock.WithLine(r.redis.Client()), soon)
				r.serveWith(func(cfg *asynq.Config) {
					defaults(cfg)
					cfg.Concurrency = workers
				}, r.process, guard)
			}
			for done := range tasks {
				running := min(n, tasks-done)
				r.await(running, done+running)
				r.one <- struct{}{}
			}
			r.awaitEmpty()
			r.effects.want(t, "7", tasks, n)
			if archived := r.archived(); len(archived) > 0 {
				t.Errorf("%d tasks were archived", len(archived))
			}
			all, most := bounces.count()
			t.Logf("%d deferrals, %d at most of one task; order %v", all, most, r.begun())
		})
	}
}

// TestLineOfALimitFindsFreePermits: permits that become free without the end of a run, as the permits of a crashed server do,
// are found by the tasks in line.
func TestLineOfALimitFindsFreePermits(t *testing.T) {
	t.Parallel()
	r := newRounds(newShop(t))
	const n, tasks, lost, workers = 5, 12, 3, 6
	limit := r.locks.Limit(n)
	names := make(chan string, 1)
	strategy := func(name string, opts ...core.LockOption) *core.Lock {
		select {
		case names <- name:
		default:
		}
		return limit(name, opts...)
	}
	guard := asynqlock.Exclusive(strategy,
		asynqlock.ByPayload("order"), asynqlock.WithLine(r.redis.Client()), asynqlock.WithRetryIn(4*time.Second))
	<-names // with which the options were checked
	r.serveWith(func(cfg *asynq.Config) { cfg.Concurrency = workers }, r.process, guard)
	r.enqueue(receipt("7"), asynq.TaskID("first"))
	r.await(1, 1)
	lease, err := r.newLocks().Semaphore(<-names, n).TryLock(t.Context(), core.WithPermits(lost))
	if err != nil {
		t.Fatal(err)
	}
	for i := range tasks - 1 {
		r.enqueue(receipt("7"), asynq.TaskID(fmt.Sprint("task-", i)))
	}
	r.await(n-lost, n-lost)
	testkit.Eventually(t, within, "the others to be deferred, but for those that wait in workers", func() bool {
		info, err := r.inspector.GetQueueInfo("default")
		return err == nil && info.Pending == 0 && info.Retry >= tasks-(n-lost)-workers/2
	})
	if err := lease.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	for done := range tasks {
		running := min(n, tasks-done)
		r.await(running, done+running)
		r.one <- struct{}{}
	}
	r.awaitEmpty()
	r.effects.want(t, "7", tasks, n)
}

// TestLineWithPermits: a guard whose tasks each take two of five permits runs two at a time.
func TestLineWithPermits(t *testing.T) {
	t.Parallel()
	r := newRounds(newShop(t))
	const at, tasks = 2, 6
	r.serve(r.process, asynqlock.Exclusive(r.locks.Limit(5), asynqlock.ByPayload("order"),
		asynqlock.WithLine(r.redis.Client()), soon, core.WithPermits(2)))
	for range tasks {
		r.enqueue(receipt("7"))
	}
	for done := range tasks {
		running := min(at, tasks-done)
		r.await(running, done+running)
		r.one <- struct{}{}
	}
	r.awaitEmpty()
	r.effects.want(t, "7", tasks, at)
}
