package asynq_test

import (
	"context"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
)

// TestWait: a task that waits runs, or is replayed, as soon as the other one has ended.
func TestWait(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	order, wait := asynqlock.ByPayload("order"), asynqlock.WithWait(within)
	asked := make(chan struct{}, 10)
	waiting := clientOf(t, d.redis.Client(), core.WithHooks(core.Hooks{
		Wait: func(context.Context, core.Wait) { asked <- struct{}{} },
	}))
	for name, test := range map[string]struct {
		first, second asynq.MiddlewareFunc
		runs          bool
	}{
		"once":      {asynqlock.Once(d.locks, order), asynqlock.Once(waiting, order, wait), false},
		"exclusive": {asynqlock.Exclusive(d.locks.Fair, order), asynqlock.Exclusive(waiting.Fair, order, wait), true},
	} {
		busy := d.occupy(delivery("1"), receipt("7"), test.first)
		ran, waited := false, make(chan error, 1)
		go func() {
			waited <- d.deliver(delivery("2"), receipt("7"), func(context.Context, *asynq.Task) error { ran = true; return nil }, test.second)
		}()
		select {
		case <-asked:
		case err := <-waited:
			t.Fatalf("%s: it did not wait: %v", name, err)
		}
		wantNil(t, busy.release())
		wantNil(t, <-waited)
		if ran != test.runs {
			t.Errorf("%s: ran: %v", name, ran)
		}
	}
}

// TestWaitEnds: the time is over, and the task is deferred.
func TestWaitEnds(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const wait = 3 * time.Second
	impatient := d.guardsOf()
	for name, guard := range d.guardsOf(asynqlock.WithWait(wait)) {
		busy := d.occupy(delivery(name), receipt("7"), impatient[name])
		since := time.Now()
		wantDeferred(t, d.deliver(delivery(name), receipt("7"), nothing, guard), busyReason[name])
		if waited := time.Since(since); waited < wait {
			t.Errorf("%s: waited %v", name, waited)
		}
		wantNil(t, busy.release())
	}
}

// TestWaitIsCancelled: asynq has done with the task while it waited; it does not run, and leaves nothing.
func TestWaitIsCancelled(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for name, guard := range d.guardsOf(asynqlock.WithWait(within)) {
		busy := d.occupy(delivery(name), receipt("7"), guard)
		ctx, cancel := context.WithCancel(t.Context())
		waited := make(chan error, 1)
		go func() {
			waited <- deliver(ctx, delivery(name), receipt("7"), func(context.Context, *asynq.Task) error { return errOwn }, guard)
		}()
		cancel()
		wantErrors(t, <-waited, context.Canceled)
		wantNil(t, busy.release())
		wantNil(t, d.deliver(delivery(name), receipt("7"), nothing, guard))
	}
}

// TestCancelledWhenGranted: its turn has come just when asynq has done with it; it does not run, and nobody is held up.
func TestCancelledWhenGranted(t *testing.T) {
	t.Parallel()
	var cancel context.CancelFunc
	d := newDesk(t, core.WithHooks(core.Hooks{
		BeginEnd:   func(context.Context, core.BeginEnd) { cancel() },
		AcquireEnd: func(context.Context, core.AcquireEnd) { cancel() },
	}))
	other := &desk{t: t, locks: clientOf(t, d.redis.Client())}
	free := other.guardsOf()
	for name, guard := range d.guardsOf() {
		ctx, end := context.WithCancel(t.Context())
		cancel = end
		err := deliver(ctx, delivery(name), receipt("7"), func(context.Context, *asynq.Task) error { return errOwn }, guard)
		wantErrors(t, err, context.Canceled)
		ran := false
		wantNil(t, other.deliver(delivery(name), receipt("7"), func(context.Context, *asynq.Task) error { ran = true; return nil }, free[name]))
		if !ran {
			t.Errorf("%s: it did not run", name)
		}
	}
}
