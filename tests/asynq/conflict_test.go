package asynq_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// awaitState returns a task once it is in that state.
func (s *shop) awaitState(id string, state asynq.TaskState) (info *asynq.TaskInfo) {
	s.t.Helper()
	defer func() {
		if s.t.Failed() {
			s.t.Logf("the task: %+v", info)
		}
	}()
	testkit.Eventually(s.t, within, "the task to be in state "+state.String(), func() (ok bool) {
		var err error
		info, err = s.inspector.GetTaskInfo("default", id)
		return err == nil && info.State == state
	})
	return info
}

// bounce waits until a task was deferred, and lets it come again at once, unless asynq has done so meanwhile.
func (s *shop) bounce(id string) *asynq.TaskInfo {
	s.t.Helper()
	info := s.awaitState(id, asynq.TaskStateRetry)
	_ = s.inspector.RunTask("default", id)
	return info
}

// blocking is a handler whose first run continues until free is closed.
func (s *shop) blocking(free <-chan struct{}) asynq.HandlerFunc {
	return func(context.Context, *asynq.Task) error {
		s.effects.begin("7")
		defer s.effects.end("7", true)
		<-free
		return nil
	}
}

// awaitRun returns once the handler has begun.
func (s *shop) awaitRun() {
	s.t.Helper()
	testkit.Eventually(s.t, within, "the handler to run", func() bool {
		_, most := s.effects.of("7")
		return most > 0
	})
}

// TestDeferralBurnsNoRetry: neither the task nor asynq's statistics show it, however often.
func TestDeferralBurnsNoRetry(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	free := make(chan struct{})
	release := context.AfterFunc(t.Context(), func() { close(free) }) // in case that the test fails
	s.serve(s.blocking(free), asynqlock.Once(s.locks, asynqlock.ByPayload("order"), soon))
	s.enqueue(receipt("7"))
	s.awaitRun()
	second := s.enqueue(receipt("7"), asynq.MaxRetry(1)).ID
	for range 5 {
		if info := s.bounce(second); info.Retried != 0 || !strings.Contains(info.LastErr, "deferred") {
			t.Errorf("retried %d times, %s", info.Retried, info.LastErr)
		}
	}
	s.awaitState(second, asynq.TaskStateRetry)
	if info, err := s.inspector.GetQueueInfo("default"); err != nil || info.Processed != 0 || info.Failed != 0 {
		t.Errorf("%+v, %v", info, err)
	}
	if release() {
		close(free)
	}
	s.awaitEmpty()
	s.effects.want(t, "7", 1, 1)
	if info, err := s.inspector.GetQueueInfo("default"); err != nil || info.Processed != 2 || info.Failed != 0 {
		t.Errorf("%+v, %v", info, err)
	}
}

// TestWithoutConfigure: a retry is burned each time, of which the log warns once.
func TestWithoutConfigure(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	var log diary
	free := make(chan struct{})
	defer close(free)
	server := asynq.NewServer(s.conn(), config())
	guard := asynqlock.Once(s.newLocks(core.WithLogger(log.logger())), asynqlock.ByPayload("order"))
	if err := server.Start(guard(s.blocking(free))); err != nil {
		t.Fatal(err)
	}
	defer server.Shutdown()
	s.enqueue(receipt("7"))
	s.awaitRun()
	for range 2 {
		id := s.enqueue(receipt("7")).ID
		for range 3 {
			s.bounce(id)
		}
		if info := s.awaitState(id, asynq.TaskStateRetry); info.Retried < 4 {
			t.Errorf("retried %d times", info.Retried)
		}
	}
	if n := strings.Count(log.String(), "pass asynq's Config to Configure"); n != 1 {
		t.Errorf("%d warnings: %s", n, log.String())
	}
}

// TestFailuresAreNoSuspicion: a task that fails of itself between two deferrals is no sign of a missing Configure.
func TestFailuresAreNoSuspicion(t *testing.T) {
	t.Parallel()
	var log diary
	d := newDesk(t, core.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	guard := asynqlock.Once(d.locks, asynqlock.ByPayload("order"))
	for retried := range 3 {
		info := delivery("2", func(info *asynq.TaskInfo) { info.Retried = retried })
		busy := d.occupy(delivery("1"), receipt("7"), asynqlock.Once(d.locks, asynqlock.ByPayload("order")))
		wantDeferred(t, d.deliver(info, receipt("7"), nothing, guard), core.ErrInProgress)
		wantNil(t, core.Release(busy.ctx))
		wantNil(t, busy.release())
		err := d.deliver(info, receipt("7"), func(context.Context, *asynq.Task) error { return errOwn }, guard)
		wantErrors(t, err, errOwn)
	}
	if log.String() != "" {
		t.Errorf("log: %s", log.String())
	}
}

// TestRetryIn: around the time that was set, and never less than asynq can tell apart.
func TestRetryIn(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	busy := d.occupy(delivery("1"), receipt("7"), asynqlock.Once(d.locks, asynqlock.ByPayload("order")))
	for _, test := range []struct {
		opts        []asynqlock.Option
		least, most time.Duration
	}{
		{nil, 5 * time.Second, 15 * time.Second},
		{[]asynqlock.Option{asynqlock.WithRetryIn(time.Minute)}, 30 * time.Second, 90 * time.Second},
		{[]asynqlock.Option{asynqlock.WithRetryIn(time.Millisecond)}, time.Second, time.Second},
	} {
		guard := asynqlock.Once(d.locks, asynqlock.ByPayload("order"), test.opts...)
		low, high := time.Hour, time.Duration(0)
		for range 50 {
			e := wantDeferred(t, d.deliver(delivery("2"), receipt("7"), nothing, guard), core.ErrInProgress)
			low, high = min(low, e.RetryIn), max(high, e.RetryIn)
			if e.KeyHash != core.KeyHash(busy.ctx) {
				t.Errorf("key %s", e.KeyHash)
			}
		}
		if low < test.least || high > test.most || (test.most > test.least && high-low < (test.most-test.least)/4) {
			t.Errorf("between %v and %v, want %v to %v", low, high, test.least, test.most)
		}
	}
	wantNil(t, busy.release())
}
