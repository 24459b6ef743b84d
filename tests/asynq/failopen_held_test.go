package asynq_test

import (
	"context"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/outage"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestShortWaitIsNoOutage: with a wait below the round trip, the second request of a task cannot be answered. Redis has
// said before that another task runs, so FailOpen opens nothing.
func TestShortWaitIsNoOutage(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	relay := d.redis.Relay()
	relay.Delay(testkit.Both, 20*time.Millisecond)
	far := &desk{t: t, redis: d.redis, locks: clientOf(t, relay.Client())}
	free := d.guardsOf()
	for name, guard := range far.guardsOf(asynqlock.FailOpen(), asynqlock.WithWait(25*time.Millisecond)) {
		busy := d.occupy(delivery(name), receipt("7"), free[name])
		err := far.deliver(delivery(name), receipt("7"), mustNotRun(t, name), guard)
		wantDeferred(t, err, busyReason[name])
		if outage.Is(err) {
			t.Errorf("%s: %v", name, err)
		}
		wantNil(t, busy.release())
	}
}

// TestHeldAndThenSilent: Redis has said that another task runs, and is silent after that. FailOpen opens nothing, not even
// on the last attempt.
func TestHeldAndThenSilent(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for name, free := range d.guardsOf() {
		relay := d.redis.Relay()
		silent := func(err error) {
			if outage.Busy(err) {
				relay.Hold(testkit.Both)
			}
		}
		far := &desk{t: t, redis: d.redis, locks: clientOf(t, relay.Client(), core.WithHooks(core.Hooks{
			AcquireEnd: func(_ context.Context, end core.AcquireEnd) { silent(end.Err) },
			BeginEnd:   func(_ context.Context, end core.BeginEnd) { silent(end.Err) },
		}))}
		guard := far.guardsOf(asynqlock.FailOpen(), asynqlock.WithWait(300*time.Millisecond))[name]
		busy := d.occupy(delivery(name), receipt("7"), free)
		wantDeferred(t, far.deliver(delivery(name), receipt("7"), mustNotRun(t, name), guard), busyReason[name])
		relay.Heal()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		err := deliver(ctx, delivery(name, lastTry), receipt("7"), mustNotRun(t, name), guard)
		cancel()
		wantDeferred(t, err, busyReason[name])
		relay.Heal()
		wantNil(t, busy.release())
	}
}

// mustNotRun is a handler that must not be called.
func mustNotRun(t *testing.T, name string) asynq.HandlerFunc {
	return func(context.Context, *asynq.Task) error {
		t.Errorf("%s: it runs beside the other one", name)
		return nil
	}
}
