package asynqlock

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"
)

// TestLimitOfWaitingWorkers: half of them may wait, and all but two for last attempts.
func TestLimitOfWaitingWorkers(t *testing.T) {
	t.Parallel()
	w := newWorkers(10)
	var stand []func()
	sit := func(last bool) bool {
		end, ok := w.sit(last)
		if ok {
			stand = append(stand, end)
		}
		return ok
	}
	for range 5 {
		if !sit(false) {
			t.Fatal("less than half of the workers wait")
		}
	}
	if sit(false) || w.free() != 0 {
		t.Error("more than half of the workers wait")
	}
	stand[0]()
	if !sit(false) {
		t.Error("nobody gets the place of one who has left")
	}
	for range 3 {
		if !sit(true) {
			t.Error("a last attempt may not wait beside half of the workers")
		}
	}
	if sit(true) {
		t.Error("last attempts take all workers")
	}
}

// TestFewWorkers: of one worker none waits, except for a last attempt, which would be archived.
func TestFewWorkers(t *testing.T) {
	t.Parallel()
	w := newWorkers(1)
	if _, ok := w.sit(false); ok {
		t.Error("the only worker waits")
	}
	if _, ok := w.sit(true); !ok {
		t.Error("a last attempt is archived by the only worker")
	}
	if _, ok := (*workers)(nil).sit(false); !ok {
		t.Error("outside of a server no task may wait")
	}
}

// TestConfigurePassesTheWorkers: the handler's context has them, and what the config's own context had.
func TestConfigurePassesTheWorkers(t *testing.T) {
	t.Parallel()
	type key struct{}
	cfg := asynq.Config{Concurrency: 7, BaseContext: func() context.Context {
		return context.WithValue(context.Background(), key{}, "own")
	}}
	Configure(&cfg)
	ctx := cfg.BaseContext()
	if w := workersOf(ctx); w == nil || w.all != 7 || ctx.Value(key{}) != "own" {
		t.Errorf("%+v, %v", w, ctx.Value(key{}))
	}
}

// TestWaitingLeavesHalfOfTheTime: whatever it may wait for, a task keeps half of its time for its handler.
func TestWaitingLeavesHalfOfTheTime(t *testing.T) {
	t.Parallel()
	for name, task := range map[string]asynq.TaskInfo{
		"a task that may wait":  {ID: "1", MaxRetry: 3},
		"one on its last retry": {ID: "1", Retried: 3, MaxRetry: 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			const all = 6 * time.Second
			ctx, cancel := context.WithTimeout(t.Context(), all)
			defer cancel()
			v := &visit{guard: new(guard), ctx: ctx, task: task, came: time.Now(), waits: time.Hour}
			since := time.Now()
			for v.patience() > 0 {
				time.Sleep(v.patience())
			}
			if waited := time.Since(since); waited > all/2 || waited < all/3 {
				t.Errorf("%s waits for %v of %v", name, waited, all)
			}
		})
	}
}
