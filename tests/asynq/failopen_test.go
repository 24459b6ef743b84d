package asynq_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
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
	for name, guard := range far.guardsOf(asynqlock.FailOpen(), core.WithWait(25*time.Millisecond)) {
		busy := d.occupy(delivery(name), receipt("7"), free[name])
		err := far.deliver(delivery(name), receipt("7"), mustNotRun(t, name), guard)
		wantDeferred(t, err, busyReason[name])
		if guards.IsOutage(err) {
			t.Errorf("%s: %v", name, err)
		}
		wantNil(t, busy.release())
	}
}

// TestHeldAndThenSilent: Redis replied that another task runs, and is silent after that. FailOpen opens nothing, not even
// on the last attempt.
func TestHeldAndThenSilent(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for name, free := range d.guardsOf() {
		relay := d.redis.Relay()
		silent := func(err error) {
			if guards.Busy(err) {
				relay.Hold(testkit.Both)
			}
		}
		far := &desk{t: t, redis: d.redis, locks: clientOf(t, relay.Client(), core.WithHooks(core.Hooks{
			AcquireEnd: func(_ context.Context, end core.AcquireEnd) { silent(end.Err) },
			BeginEnd:   func(_ context.Context, end core.BeginEnd) { silent(end.Err) },
		}))}
		guard := far.guardsOf(asynqlock.FailOpen(), core.WithWait(300*time.Millisecond))[name]
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

// TestLastAttemptInsideItsOwnRun: the run that is known of is the task's own, so it waits for nothing.
func TestLastAttemptInsideItsOwnRun(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.redis.Kill()
	guard := asynqlock.Exclusive(d.locks.Mutex, asynqlock.ByTaskID(), asynqlock.FailOpen())
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	began := time.Now()
	wantNil(t, deliver(ctx, delivery("a", lastTry), receipt("7"), nothing, guard, guard))
	if waited := time.Since(began); waited > within {
		t.Errorf("waited for %v", waited)
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

// TestUnguardedRunDoesNotRunAgain: a task that has run while Redis was stopped is redelivered when Redis continues.
func TestUnguardedRunDoesNotRunAgain(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	guard := asynqlock.Once(d.locks, asynqlock.ByTaskID(), asynqlock.FailOpen())
	d.redis.Pause()
	ran := false
	err := d.deliver(delivery("a"), receipt("7"), func(context.Context, *asynq.Task) error { ran = true; return nil }, guard)
	d.redis.Resume()
	wantNil(t, err)
	if !ran {
		t.Error("it did not run without Redis")
	}
	wantNil(t, d.deliver(delivery("a"), receipt("7"), mustNotRun(t, "again"), guard))
}

// awaitRecord waits until the record of a task has a state.
func awaitRecord(t *testing.T, locks *core.Client, info *asynq.TaskInfo, want core.State) core.Record {
	t.Helper()
	guard := newOnce(t, locks, asynqlock.ByTaskID())
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		r, err := guard.Peek(t.Context(), info)
		if err == nil && r.State == want {
			return r
		}
		if time.Now().After(deadline) {
			t.Fatalf("record %+v, error %v, want state %q", r, err, want)
		}
	}
}

// TestUnguardedRunIsRecordedLate: other servers learn of the run, of its result and of its task.
func TestUnguardedRunIsRecordedLate(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	far, relay := behindRelay(d)
	guard := asynqlock.Once(far.locks, asynqlock.ByTaskID(), asynqlock.FailOpen())
	info := delivery("a")
	task := receipt("7")
	info.Type, info.Payload = task.Type(), task.Payload()
	silence(relay)
	wantNil(t, far.deliver(info, task, func(ctx context.Context, _ *asynq.Task) error {
		return asynqlock.SetResult(ctx, []byte("result"))
	}, guard))
	relay.Heal()
	wantNil(t, far.deliver(info, task, mustNotRun(t, "here"), guard))
	r := awaitRecord(t, d.locks, info, core.StateCompleted)
	if string(r.Value) != "result" || !strings.Contains(r.Note, "/a ") || len(r.Fingerprint) == 0 {
		t.Errorf("record %+v", r)
	}
	wantNil(t, d.deliver(info, task, mustNotRun(t, "elsewhere"), asynqlock.Once(d.locks, asynqlock.ByTaskID())))
}

// TestUnguardedRunExcludesAfterOutage: the run continues when Redis replies again, and has no lease there.
func TestUnguardedRunExcludesAfterOutage(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for name := range d.guardsOf() {
		far, relay := behindRelay(d)
		guard := far.guardsOf(asynqlock.FailOpen())[name]
		silence(relay)
		busy := far.occupy(delivery(name), receipt("7"), guard)
		relay.Heal()
		wantDeferred(t, far.deliver(delivery(name), receipt("7"), mustNotRun(t, name), guard), busyReason[name])
		wantNil(t, busy.release())
	}
}

// TestUnguardedUnknownOutcomeIsHeld: the handler says that nobody knows. The task is archived, and so is its next delivery.
func TestUnguardedUnknownOutcomeIsHeld(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	far, relay := behindRelay(d)
	guard := asynqlock.Once(far.locks, asynqlock.ByTaskID(), asynqlock.FailOpen())
	info := delivery("a")
	task := receipt("7")
	info.Type, info.Payload = task.Type(), task.Payload()
	silence(relay)
	hold := func(ctx context.Context, _ *asynq.Task) error { _ = core.Hold(ctx, "the handler says so"); return nil }
	wantErrors(t, far.deliver(info, task, hold, guard), core.ErrOutcomeUnknown, asynq.SkipRetry)
	relay.Heal()
	wantErrors(t, far.deliver(info, task, mustNotRun(t, "here"), guard), core.ErrOutcomeUnknown, asynq.SkipRetry)
	awaitRecord(t, d.locks, info, core.StateUnknown)
	wantErrors(t, far.deliver(info, task, mustNotRun(t, "here"), guard), core.ErrOutcomeUnknown, asynq.SkipRetry)
}

// TestEachHeldTaskIsLogged: an operator has to look at each of them. Its further deliveries are no news.
func TestEachHeldTaskIsLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	d := newDesk(t, core.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	guard := asynqlock.Once(d.locks, asynqlock.ByTaskID(), core.WithFailurePolicy(core.HoldFailures))
	fails := func(context.Context, *asynq.Task) error { return errOwn }
	for _, id := range []string{"a", "b", "c"} {
		wantErrors(t, d.deliver(delivery(id), receipt("7"), fails, guard), core.ErrOutcomeUnknown)
		wantErrors(t, d.deliver(delivery(id), receipt("7"), fails, guard), core.ErrOutcomeUnknown)
		if n := strings.Count(log.String(), "outcome of the work is unknown"); n != 1 || !strings.Contains(log.String(), "key_hash=") {
			t.Errorf("%s: %d lines: %s", id, n, log.String())
		}
		log.Reset()
	}
}

// TestRecordedRunDoesNotRunAgain: Redis goes away right after it has recorded the run of a task, and the task is redelivered.
func TestRecordedRunDoesNotRunAgain(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	guard := asynqlock.Once(d.locks, asynqlock.ByTaskID(), asynqlock.FailOpen())
	wantNil(t, d.deliver(delivery("a"), receipt("7"), func(context.Context, *asynq.Task) error { return nil }, guard))
	d.redis.Pause()
	defer d.redis.Resume()
	wantNil(t, d.deliver(delivery("a"), receipt("7"), mustNotRun(t, "in the outage"), guard))
}
