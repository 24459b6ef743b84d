package asynq_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestDuplicates: a producer enqueues the same twice. Without the guard, both run.
func TestDuplicates(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"guarded": 1, "baseline": 2} {
		s := newShop(t)
		var guards []asynq.MiddlewareFunc
		if name == "guarded" {
			guards = append(guards, asynqlock.Once(s.locks, asynqlock.ByPayload("order"), soon))
		}
		s.serve(func(context.Context, *asynq.Task) error {
			s.effects.begin("7")
			s.effects.end("7", true)
			return nil
		}, guards...)
		for range 2 {
			s.enqueue(receipt("7"))
		}
		s.awaitEmpty()
		if done, _ := s.effects.of("7"); done != want {
			t.Errorf("%s: done %d times, want %d", name, done, want)
		}
	}
}

// semaphore is a baseline: at most one task of a payload runs, by a set of task IDs that expire with the deadlines of the
// tasks, as in asynq's package x/rate, which refuses the clients that asynq 0.26 makes. A task that is refused comes again
// within ten seconds and uses up no retry.
func semaphore(rdb redis.UniversalClient) asynq.MiddlewareFunc {
	return func(next asynq.Handler) asynq.Handler {
		return asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
			id, _ := asynq.GetTaskID(ctx)
			key, deadline := "semaphore:"+string(t.Payload()), time.Now().Add(time.Minute).Unix()
			free, err := semaphoreScript.Run(ctx, rdb, []string{key}, time.Now().Unix(), deadline, id).Bool()
			if err != nil {
				return err
			}
			if !free {
				refusals.Add(1)
				return errRefused
			}
			defer rdb.ZRem(context.WithoutCancel(ctx), key, id)
			return next.ProcessTask(ctx, t)
		})
	}
}

var (
	errRefused      = errors.New("the semaphore is taken")
	refusals        atomic.Int64
	semaphoreScript = redis.NewScript(`
redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, ARGV[1])
if redis.call('ZCARD', KEYS[1]) > 0 then
  return 0
end
return redis.call('ZADD', KEYS[1], ARGV[2], ARGV[3])
`)
)

func notRefused(err error) bool { return !errors.Is(err, errRefused) }

func refusedDelay(n int, err error, t *asynq.Task) time.Duration {
	if errors.Is(err, errRefused) {
		return rand.N(10 * time.Second)
	}
	return asynq.DefaultRetryDelayFunc(n, err, t)
}

// strategies are those that exclude. Each has Redis servers of its own.
var strategies = map[string]func(t *testing.T) core.Strategy{
	"Mutex":     func(t *testing.T) core.Strategy { return newDesk(t).locks.Mutex },
	"Fair":      func(t *testing.T) core.Strategy { return newDesk(t).locks.Fair },
	"Write":     func(t *testing.T) core.Strategy { return newDesk(t).locks.Write },
	"FairWrite": func(t *testing.T) core.Strategy { return newDesk(t).locks.FairWrite },
	"Redlock":   func(t *testing.T) core.Strategy { return redlockOf(t).Mutex },
	"Multi": func(t *testing.T) core.Strategy {
		locks := newDesk(t).locks
		return func(name string, opts ...core.LockOption) *core.Lock {
			return core.Multi(locks.Mutex("stock", opts...), locks.Fair(name, opts...))
		}
	},
}

// redlockOf has five masters.
func redlockOf(t *testing.T) *core.Redlock {
	t.Helper()
	var nodes []redis.UniversalClient
	for range 5 {
		nodes = append(nodes, testkit.Start(t).Client())
	}
	r, err := core.NewRedlock(nodes, core.WithNodeTimeout(5*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// TestExclusive: whatever the strategy, no two at a time, and all get their turn.
func TestExclusive(t *testing.T) {
	t.Parallel()
	for name, strategy := range strategies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const tasks = 8
			guard := asynqlock.Exclusive(strategy(t), asynqlock.ByPayload("order"), core.WithWait(within))
			var e effects
			var all sync.WaitGroup
			for i := range tasks {
				all.Go(func() {
					err := deliver(t.Context(), delivery(fmt.Sprint(i)), receipt("7"), func(context.Context, *asynq.Task) error {
						e.begin("7")
						defer e.end("7", true)
						runtime.Gosched()
						return nil
					}, guard)
					wantNil(t, err)
				})
			}
			all.Wait()
			e.want(t, "7", tasks, 1)
		})
	}
}

// TestExclusiveConflict: a busy key defers, another one does not.
func TestExclusiveConflict(t *testing.T) {
	t.Parallel()
	for name, strategy := range strategies {
		if name == "Multi" {
			continue // all have one member in common
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			guard := asynqlock.Exclusive(strategy(t), asynqlock.ByPayload("order"))
			busy := occupy(t, t.Context(), delivery("1"), receipt("7"), guard)
			if _, ok := core.TokenFrom(busy.ctx); !ok {
				t.Error("no token")
			}
			wantDeferred(t, deliver(t.Context(), delivery("2"), receipt("7"), nothing, guard), core.ErrNotAcquired)
			wantNil(t, deliver(t.Context(), delivery("3"), receipt("8"), nothing, guard))
			wantNil(t, busy.release())
			wantNil(t, deliver(t.Context(), delivery("2"), receipt("7"), nothing, guard))
		})
	}
}

// TestExclusiveEnds: however the handler ends, the key is free afterwards.
func TestExclusiveEnds(t *testing.T) {
	t.Parallel()
	for name, strategy := range strategies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			guard := asynqlock.Exclusive(strategy(t), asynqlock.ByPayload("order"))
			free := func(what string) {
				t.Helper()
				if err := deliver(t.Context(), delivery("2"), receipt("7"), nothing, guard); err != nil {
					t.Errorf("after %s: %v", what, err)
				}
			}
			try := func(end func() error) error {
				return deliver(t.Context(), delivery("1"), receipt("7"), func(context.Context, *asynq.Task) error { return end() }, guard)
			}
			if err := try(func() error { return errOwn }); !errors.Is(err, errOwn) || !isFailure(err) {
				t.Errorf("%v", err)
			}
			free("an error")
			if got := panicOf(func() { _ = try(func() error { panic("end") }) }); got != "end" {
				t.Errorf("panic %q", got)
			}
			free("a panic")
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				_ = try(func() error { runtime.Goexit(); return nil })
			}()
			<-gone
			free("Goexit")
		})
	}
}

// TestReadersShare: but not with a writer.
func TestReadersShare(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for name, strategies := range map[string][2]core.Strategy{
		"turns": {d.locks.Read, d.locks.Write}, "line": {d.locks.FairRead, d.locks.FairWrite},
	} {
		order := asynqlock.ByPayload("order")
		read, write := asynqlock.Exclusive(strategies[0], order), asynqlock.Exclusive(strategies[1], order)
		one := d.occupy(delivery("1"), receipt(name), read)
		two := d.occupy(delivery("2"), receipt(name), read)
		wantDeferred(t, d.deliver(delivery("3"), receipt(name), nothing, write), core.ErrNotAcquired)
		wantNil(t, one.release())
		wantDeferred(t, d.deliver(delivery("3"), receipt(name), nothing, write), core.ErrNotAcquired)
		wantNil(t, two.release())
		writer := d.occupy(delivery("3"), receipt(name), write)
		wantDeferred(t, d.deliver(delivery("1"), receipt(name), nothing, read), core.ErrNotAcquired)
		wantNil(t, writer.release())
	}
}
