package asynq_test

import (
	"context"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
)

// guardsOf makes one of each with the same options.
func (d *desk) guardsOf(opts ...asynqlock.Option) map[string]asynq.MiddlewareFunc {
	return map[string]asynq.MiddlewareFunc{
		"once":      asynqlock.Once(d.locks, asynqlock.ByTaskID(), opts...),
		"exclusive": asynqlock.Exclusive(d.locks.Mutex, asynqlock.ByTaskID(), opts...),
	}
}

// busyReason is why they defer.
var busyReason = map[string]error{"once": core.ErrInProgress, "exclusive": core.ErrNotAcquired}

// TestZombieKeepsItsLease: asynq has done with the task, but its handler has not.
func TestZombieKeepsItsLease(t *testing.T) {
	t.Parallel()
	renewed := make(chan error, 100)
	d := newDesk(t, core.WithHooks(core.Hooks{Renewed: func(_ context.Context, r core.Renewed) { renewed <- r.Err }}))
	for name, guard := range d.guardsOf(asynqlock.WithTTL(6 * time.Second)) {
		ctx, cancel := context.WithCancel(t.Context())
		zombie := occupy(t, ctx, delivery(name), receipt("7"), guard)
		cancel()
		for range len(renewed) + 2 { // those that were before, and two since
			wantNil(t, <-renewed)
		}
		wantDeferred(t, d.deliver(delivery(name), receipt("7"), nothing, guard), busyReason[name])
		wantNil(t, zombie.release())
	}
}

// TestZombieIsRecorded: what it returns, asynq ignores; the next delivery finds it.
func TestZombieIsRecorded(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	guard := asynqlock.Once(d.locks, asynqlock.ByTaskID())
	ctx, cancel := context.WithCancel(t.Context())
	zombie := occupy(t, ctx, delivery("1"), receipt("7"), guard)
	cancel()
	wantNil(t, zombie.release())
	wantNil(t, d.deliver(delivery("1"), receipt("7"), func(context.Context, *asynq.Task) error { return errOwn }, guard))
}

// TestZombieGrace: one that does not end is told of, and its lease runs out.
func TestZombieGrace(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	zombies := make(chan asynqlock.Zombie, 1)
	hook := asynqlock.Hooks{Zombie: func(_ context.Context, z asynqlock.Zombie) { zombies <- z }}
	for name, guard := range d.guardsOf(brief, asynqlock.WithZombieGrace(time.Millisecond), asynqlock.WithHooks(hook),
		asynqlock.WithWait(within)) {
		ctx, cancel := context.WithCancel(t.Context())
		before := time.Now()
		zombie := occupy(t, ctx, delivery(name), receipt("7"), guard)
		cancel()
		z := <-zombies
		if z.Task.ID != name || z.KeyHash != asynqlock.KeyHash(zombie.ctx) || z.Since.Before(before) {
			t.Errorf("%s: %+v", name, z)
		}
		ran := false
		wantNil(t, d.deliver(delivery(name), receipt("7"), func(context.Context, *asynq.Task) error { ran = true; return nil }, guard))
		if !ran {
			t.Errorf("%s: nobody else ran", name)
		}
		_ = zombie.release()
	}
}

// TestNoZombie: a handler that ends with its context is none.
func TestNoZombie(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	zombies := make(chan asynqlock.Zombie, 10)
	hook := asynqlock.Hooks{Zombie: func(_ context.Context, z asynqlock.Zombie) { zombies <- z }}
	grace := 4 * time.Second // what the end of a run may take
	guards := d.guardsOf(asynqlock.WithZombieGrace(grace), asynqlock.WithHooks(hook))
	for name, guard := range guards {
		ctx, cancel := context.WithCancel(t.Context())
		_ = deliver(ctx, delivery(name), receipt("7"), func(ctx context.Context, _ *asynq.Task) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		}, guard)
	}
	select {
	case z := <-zombies:
		t.Errorf("%+v", z)
	case <-time.After(grace + time.Second):
	}
}
