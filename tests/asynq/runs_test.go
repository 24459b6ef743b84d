package asynq_test

import (
	"context"
	"errors"
	"regexp"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestDrainNamesWhatIsLeft: of all guards that share the list.
func TestDrainNamesWhatIsLeft(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var runs asynqlock.Runs
	guards := d.guardsOf(asynqlock.WithRuns(&runs))
	first := d.occupy(delivery("1"), receipt("7"), guards["once"])
	second := d.occupy(delivery("2"), receipt("8"), guards["exclusive"])
	over, cancel := context.WithCancel(t.Context())
	cancel()
	want := regexp.MustCompile(`still running: receipt:send default/1 for \S+, receipt:send default/2 for \S+: context canceled$`)
	if err := runs.Drain(over); !errors.Is(err, asynqlock.ErrStillRunning) || !want.MatchString(err.Error()) {
		t.Errorf("%v", err)
	}
	_, _ = first.release(), second.release()
	wantNil(t, runs.Drain(over))
}

// TestRunsWithoutRedis: Drain has no lease of such a run to give up.
func TestRunsWithoutRedis(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.redis.Kill()
	var runs asynqlock.Runs
	for name, guard := range d.guardsOf(asynqlock.WithRuns(&runs), asynqlock.FailOpen()) {
		busy := d.occupy(delivery(name), receipt("7"), guard)
		over, cancel := context.WithCancel(t.Context())
		cancel()
		wantErrors(t, runs.Drain(over), asynqlock.ErrStillRunning)
		wantNil(t, busy.ctx.Err())
		wantNil(t, busy.release())
	}
	wantNil(t, runs.Drain(t.Context()))
}

// TestDrain: it waits until the record is written.
func TestDrain(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	relay := server.Relay()
	locks, other := clientOf(t, relay.Client()), clientOf(t, server.Client())
	var runs asynqlock.Runs
	wantNil(t, runs.Drain(t.Context()))
	key, info := asynqlock.ByTaskID(), delivery("1", ofKind)
	busy := occupy(t, t.Context(), info, receipt("7"), asynqlock.Once(locks, key, asynqlock.WithRuns(&runs)))
	drained := make(chan error, 1)
	go func() { drained <- runs.Drain(t.Context()) }()
	relay.Hold(testkit.ToServer)
	busy.leave()
	testkit.Eventually(t, within, "the record to be on its way", func() bool { return relay.Held(testkit.ToServer) > 0 })
	select {
	case err := <-drained:
		t.Errorf("drained before: %v", err)
	default:
	}
	relay.Heal()
	wantNil(t, <-drained)
	if r, err := newOnce(t, other, key).Peek(t.Context(), info); err != nil || r.State != core.StateCompleted {
		t.Errorf("%+v, %v", r, err)
	}
	wantNil(t, busy.release())
}

// TestDrainFreesNothing: what a handler that continues holds is held until its lease is over, though the client is
// closed.
func TestDrainFreesNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var runs asynqlock.Runs
	over, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	live := []*occupied{}
	for name, guard := range d.guardsOf(asynqlock.WithRuns(&runs)) {
		live = append(live, d.occupy(delivery(name), receipt("7"), guard))
	}
	wantErrors(t, runs.Drain(over), asynqlock.ErrStillRunning, context.DeadlineExceeded)
	for _, o := range live {
		<-o.ctx.Done()
		wantErrors(t, context.Cause(o.ctx), core.ErrLeaseLost)
	}
	wantNil(t, d.locks.Close())
	other := clientOf(t, d.redis.Client())
	for name, guard := range (&desk{t: t, locks: other}).guardsOf() {
		wantDeferred(t, d.deliver(delivery(name), receipt("7"), nothing, guard), busyReason[name])
	}
	wantErrors(t, runs.Drain(over), asynqlock.ErrStillRunning)
	for _, o := range live {
		_ = o.release()
	}
	wantNil(t, runs.Drain(t.Context()))
}

// TestAbandonedSuccess: a handler that ends after all is recorded, as long as nobody has followed.
func TestAbandonedSuccess(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var runs asynqlock.Runs
	key, info := asynqlock.ByTaskID(), delivery("1", ofKind)
	guard := newOnce(t, d.locks, key, asynqlock.WithRuns(&runs))
	busy := d.occupy(info, receipt("7"), guard.Wrap)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	wantErrors(t, runs.Drain(over), asynqlock.ErrStillRunning)
	wantNil(t, busy.release())
	if r, err := guard.Peek(t.Context(), info); err != nil || r.State != core.StateCompleted {
		t.Errorf("%+v, %v", r, err)
	}
}
