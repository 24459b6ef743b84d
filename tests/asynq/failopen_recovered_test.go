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
)

// TestUnguardedRunDoesNotRunAgain: a task that has run while Redis was stopped is redelivered when Redis goes on.
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
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		r, err := asynqlock.Peek(t.Context(), locks, asynqlock.ByTaskID(), info)
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

// TestUnguardedRunExcludesAfterOutage: the run goes on when Redis replies again, and has no lease there.
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
	hold := func(ctx context.Context, _ *asynq.Task) error { _ = asynqlock.Hold(ctx); return nil }
	wantErrors(t, far.deliver(info, task, hold, guard), core.ErrOutcomeUnknown, asynq.SkipRetry)
	relay.Heal()
	wantErrors(t, far.deliver(info, task, mustNotRun(t, "here"), guard), core.ErrOutcomeUnknown, asynq.SkipRetry)
	awaitRecord(t, d.locks, info, core.StateUnknown)
	wantErrors(t, far.deliver(info, task, mustNotRun(t, "here"), guard), core.ErrOutcomeUnknown, asynq.SkipRetry)
}

// TestEachHeldTaskIsLogged: an operator has to look at each of them. Its further deliveries are no news.
func TestEachHeldTaskIsLogged(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var log bytes.Buffer
	guard := asynqlock.Once(d.locks, asynqlock.ByTaskID(), asynqlock.AtMostOnce(),
		asynqlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	fails := func(context.Context, *asynq.Task) error { return errOwn }
	for _, id := range []string{"a", "b", "c"} {
		wantErrors(t, d.deliver(delivery(id), receipt("7"), fails, guard), core.ErrOutcomeUnknown)
		wantErrors(t, d.deliver(delivery(id), receipt("7"), fails, guard), core.ErrOutcomeUnknown)
		if n := strings.Count(log.String(), "outcome of a task is unknown"); n != 1 || !strings.Contains(log.String(), "task="+id) {
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
