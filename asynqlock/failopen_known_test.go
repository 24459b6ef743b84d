package asynqlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// behindRelay returns a desk whose guards reach the Redis of d through a relay.
func behindRelay(d *desk) (far *desk, relay *redistest.Relay) {
	relay = d.redis.Relay()
	d.t.Cleanup(relay.Heal) // so that the client can close soon
	return &desk{t: d.t, redis: d.redis, locks: clientOf(d.t, relay.Client())}, relay
}

// silence begins an outage for the clients of a relay.
func silence(relay *redistest.Relay) {
	relay.Refuse(true)
	relay.Reset()
}

// TestOwnRunAndThenSilent: a duplicate comes in an outage, to the server that runs the task.
func TestOwnRunAndThenSilent(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for name := range d.guardsOf() {
		far, relay := behindRelay(d)
		guard := far.guardsOf(asynqlock.FailOpen())[name]
		busy := far.occupy(delivery(name), receipt("7"), guard)
		silence(relay)
		wantDeferred(t, far.deliver(delivery(name), receipt("7"), mustNotRun(t, name), guard), busyReason[name])
		relay.Heal()
		wantNil(t, busy.release())
	}
}

// TestUnguardedRunAndADuplicate: both come in an outage. Behind the first one, the same guard lets the task pass.
func TestUnguardedRunAndADuplicate(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for name := range d.guardsOf() {
		far, relay := behindRelay(d)
		guard := far.guardsOf(asynqlock.FailOpen())[name]
		silence(relay)
		busy := far.occupy(delivery(name), receipt("7"), guard, guard)
		wantDeferred(t, far.deliver(delivery(name), receipt("7"), mustNotRun(t, name), guard), busyReason[name])
		relay.Heal()
		wantNil(t, busy.release())
	}
}

// TestDeferredAndThenSilent: asynq redelivers a deferred task in an outage. The other task had a lease when Redis last answered.
func TestDeferredAndThenSilent(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for name, free := range d.guardsOf() {
		far, relay := behindRelay(d)
		guard := far.guardsOf(asynqlock.FailOpen())[name]
		busy := d.occupy(delivery(name), receipt("7"), free)
		wantDeferred(t, far.deliver(delivery(name), receipt("7"), mustNotRun(t, name), guard), busyReason[name])
		silence(relay)
		wantDeferred(t, far.deliver(delivery(name), receipt("7"), mustNotRun(t, name), guard), busyReason[name])
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		err := deliver(ctx, delivery(name, lastTry), receipt("7"), mustNotRun(t, name), guard)
		cancel()
		wantDeferred(t, err, busyReason[name])
		relay.Heal()
		wantNil(t, busy.release())
	}
}

// TestSuccessAndThenSilent: Redis has not confirmed the record of a task that has taken effect here. Of one that has failed, there
// is nothing to protect.
func TestSuccessAndThenSilent(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	far, relay := behindRelay(d)
	guard := asynqlock.Once(far.locks, asynqlock.ByTaskID(), asynqlock.FailOpen(), asynqlock.WithFinishTimeout(time.Second))
	thenSilent := func(err error) asynq.HandlerFunc {
		return func(context.Context, *asynq.Task) error { silence(relay); return err }
	}
	wantNil(t, far.deliver(delivery("a"), receipt("7"), thenSilent(nil), guard))
	wantDeferred(t, far.deliver(delivery("a"), receipt("7"), mustNotRun(t, "once"), guard), core.ErrInProgress)

	far, relay = behindRelay(d)
	guard = asynqlock.Once(far.locks, asynqlock.ByTaskID(), asynqlock.FailOpen(), asynqlock.WithFinishTimeout(time.Second))
	if err := far.deliver(delivery("b"), receipt("8"), thenSilent(context.Canceled), guard); err == nil {
		t.Error("the failure got lost")
	}
	wantNil(t, far.deliver(delivery("b"), receipt("8"), nothing, guard))
}
