package asynq_test

import (
	"context"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// behindRelay returns a desk whose guards reach the Redis of d through a relay.
func behindRelay(d *desk) (far *desk, relay *testkit.Relay) {
	relay = d.redis.Relay()
	d.t.Cleanup(relay.Heal) // so that the client can close soon
	return &desk{t: d.t, redis: d.redis, locks: clientOf(d.t, relay.Client())}, relay
}

// silence begins an outage for the clients of a relay.
func silence(relay *testkit.Relay) {
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

// TestUnguardedRunAndADuplicate: both come in an outage. Behind the first one, the same guard lets the task pass. A success
// counts, though it has no record.
func TestUnguardedRunAndADuplicate(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for name := range d.guardsOf() {
		far, relay := behindRelay(d)
		guard := far.guardsOf(asynqlock.FailOpen())[name]
		silence(relay)
		busy := far.occupy(delivery(name), receipt("7"), guard, guard)
		wantDeferred(t, far.deliver(delivery(name), receipt("7"), mustNotRun(t, name), guard), busyReason[name])
		wantNil(t, busy.release())
		if name == "exclusive" {
			wantNil(t, far.deliver(delivery(name), receipt("7"), nothing, guard))
		} else {
			wantNil(t, far.deliver(delivery(name), receipt("7"), mustNotRun(t, name), guard))
		}
	}
}

// TestLastAttemptAfterAKnownRun: a task on its last attempt waits for a run of its server in an outage, and runs after that.
func TestLastAttemptAfterAKnownRun(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	relay := d.redis.Relay()
	t.Cleanup(relay.Heal)
	asked := make(chan error, 100)
	locks := clientOf(t, relay.Client(), core.WithHooks(core.Hooks{
		AcquireEnd: func(_ context.Context, end core.AcquireEnd) { asked <- end.Err },
	}))
	guard := asynqlock.Exclusive(locks.Mutex, asynqlock.ByTaskID(), asynqlock.FailOpen())
	busy := d.occupy(delivery("a"), receipt("7"), guard)
	<-asked
	silence(relay)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ran, err := make(chan struct{}), make(chan error, 1)
	go func() {
		err <- deliver(ctx, delivery("a", lastTry), receipt("7"), func(context.Context, *asynq.Task) error {
			close(ran)
			return nil
		}, guard)
	}()
	for outage := range asked {
		if outage != nil {
			break
		}
	}
	busy.leave()
	wantNil(t, <-err)
	<-ran
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

// TestSuccessAndThenSilent: Redis has not confirmed the record of a task that has taken effect here. A duplicate is acknowledged. A
// task that has failed may run again.
func TestSuccessAndThenSilent(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	far, relay := behindRelay(d)
	guard := asynqlock.Once(far.locks, asynqlock.ByTaskID(), asynqlock.FailOpen(), asynqlock.WithFinishTimeout(time.Second))
	thenSilent := func(err error) asynq.HandlerFunc {
		return func(context.Context, *asynq.Task) error { silence(relay); return err }
	}
	wantNil(t, far.deliver(delivery("a"), receipt("7"), thenSilent(nil), guard))
	wantNil(t, far.deliver(delivery("a"), receipt("7"), mustNotRun(t, "once"), guard))

	far, relay = behindRelay(d)
	guard = asynqlock.Once(far.locks, asynqlock.ByTaskID(), asynqlock.FailOpen(), asynqlock.WithFinishTimeout(time.Second))
	if err := far.deliver(delivery("b"), receipt("8"), thenSilent(context.Canceled), guard); err == nil {
		t.Error("the failure got lost")
	}
	wantNil(t, far.deliver(delivery("b"), receipt("8"), nothing, guard))
}
