package asynq_test

import (
	"context"
	"errors"
	"testing"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
)

// heard collects what hooks are told, for the test's own goroutine.
type heard struct {
	acquired []asynqlock.Acquired
	replayed []asynqlock.Replayed
	skipped  []asynqlock.Skipped
	deferred []asynqlock.Deferred
	refused  []asynqlock.Refused
	finished []asynqlock.Finished
	failed   []asynqlock.Failure
}

func (h *heard) option() asynqlock.Option {
	return asynqlock.WithHooks(asynqlock.Hooks{
		Acquired: func(_ context.Context, a asynqlock.Acquired) { h.acquired = append(h.acquired, a) },
		Replayed: func(_ context.Context, r asynqlock.Replayed) { h.replayed = append(h.replayed, r) },
		Skipped:  func(_ context.Context, s asynqlock.Skipped) { h.skipped = append(h.skipped, s) },
		Deferred: func(_ context.Context, d asynqlock.Deferred) { h.deferred = append(h.deferred, d) },
		Refused:  func(_ context.Context, r asynqlock.Refused) { h.refused = append(h.refused, r) },
		Finished: func(_ context.Context, f asynqlock.Finished) { h.finished = append(h.finished, f) },
		Failed:   func(_ context.Context, f asynqlock.Failure) { h.failed = append(h.failed, f) },
	})
}

// named is a task of which all is known.
func named(info *asynq.TaskInfo) asynqlock.Task {
	return asynqlock.Task{ID: info.ID, Queue: info.Queue, Type: kind, Retried: info.Retried, MaxRetry: info.MaxRetry}
}

// TestHooksOfRuns: what ran, how it ended, and what came again.
func TestHooksOfRuns(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var h heard
	guard := asynqlock.Once(d.locks, asynqlock.ByPayload("order"), h.option())
	info := delivery("1", func(info *asynq.TaskInfo) { info.Queue, info.Retried = "critical", 3 })
	var seen facts
	run := func(err error) {
		_ = d.deliver(info, receipt("7"), func(ctx context.Context, _ *asynq.Task) error {
			seen = factsOf(ctx)
			return err
		}, guard)
	}
	run(errOwn)
	run(nil)
	run(errors.New("it runs again"))
	if len(h.acquired) != 2 || len(h.finished) != 2 || len(h.replayed) != 1 {
		t.Fatalf("%+v", h)
	}
	a := h.acquired[1]
	if a.Task != named(info) || a.KeyHash != seen.hash || a.Token != seen.token || a.Attempt != 2 || a.Waited <= 0 {
		t.Errorf("acquired %+v, %+v", a, seen)
	}
	f := h.finished[0]
	if f.Task != named(info) || f.KeyHash != seen.hash || f.Attempt != 1 || f.State != core.StateNone || f.Held <= 0 ||
		!errors.Is(f.Err, errOwn) {
		t.Errorf("finished %+v", f)
	}
	if f = h.finished[1]; f.Attempt != 2 || f.State != core.StateCompleted || f.Err != nil {
		t.Errorf("finished %+v", f)
	}
	if r := h.replayed[0]; r.Task != named(info) || r.KeyHash != seen.hash || r.Attempt != 2 {
		t.Errorf("replayed %+v", r)
	}
}

// TestHooksOfRefusals: what did not run, and why.
func TestHooksOfRefusals(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var h heard
	order := asynqlock.ByPayload("order")
	guard := asynqlock.Once(d.locks, order, h.option(), asynqlock.ComparePayload())
	busy := d.occupy(delivery("1"), receipt("7"), guard)
	hash := core.KeyHash(busy.ctx)
	two := delivery("2")
	e := wantDeferred(t, d.deliver(two, receipt("7"), nothing, guard), core.ErrInProgress)
	wantNil(t, d.deliver(two, receipt("7"), nothing, asynqlock.Once(d.locks, order, h.option(), asynqlock.SkipDuplicates())))
	_ = d.deliver(two, task(kind, `{"order":"7","x":1}`), nothing, guard)
	_ = d.deliver(two, task(kind, `{}`), nothing, guard)
	wantNil(t, busy.release())
	if len(h.deferred) != 1 || len(h.skipped) != 1 || len(h.refused) != 2 || len(h.failed) != 0 {
		t.Fatalf("%+v", h)
	}
	x := h.deferred[0]
	if x.Task != named(two) || x.KeyHash != hash || x.RetryIn != e.RetryIn || x.Times != 1 || !errors.Is(x.Err, core.ErrInProgress) {
		t.Errorf("deferred %+v", x)
	}
	if s := h.skipped[0]; s.Task != named(two) || s.KeyHash != hash || !errors.Is(s.Err, core.ErrInProgress) {
		t.Errorf("skipped %+v", s)
	}
	if r := h.refused[0]; r.Task != named(two) || r.KeyHash != hash || !errors.Is(r.Err, core.ErrFingerprintMismatch) {
		t.Errorf("refused %+v", r)
	}
	if r := h.refused[1]; r.Task != named(two) || r.KeyHash != "" || !errors.Is(r.Err, asynqlock.ErrNoKey) {
		t.Errorf("refused %+v", r)
	}
}

// TestHooksOfWords: a word is told with the error that it outweighs.
func TestHooksOfWords(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var h heard
	guard := asynqlock.Once(d.locks, asynqlock.ByTaskID(), h.option())
	wantNil(t, d.deliver(delivery("1"), receipt("7"), func(ctx context.Context, _ *asynq.Task) error {
		wantNil(t, core.Complete(ctx))
		return errOwn
	}, guard))
	_ = d.deliver(delivery("2"), receipt("7"), func(ctx context.Context, _ *asynq.Task) error {
		return core.Hold(ctx, "the handler says so")
	}, guard)
	if len(h.finished) != 2 || h.finished[0].State != core.StateCompleted || !errors.Is(h.finished[0].Err, errOwn) ||
		h.finished[1].State != core.StateUnknown || !errors.Is(h.finished[1].Err, core.ErrOutcomeUnknown) {
		t.Fatalf("%+v", h.finished)
	}
	if r, err := d.locks.Once("asynq:" + h.finished[1].KeyHash).Peek(t.Context()); err != nil || r.Reason != "the handler says so" {
		t.Errorf("the reason is %q, %v", r.Reason, err)
	}
}

// TestHooksOfPanics: a handler that does not return has ended too.
func TestHooksOfPanics(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var h heard
	for name, guard := range d.guardsOf(h.option()) {
		h.finished = nil
		panicOf(func() {
			_ = d.deliver(delivery(name), receipt("7"), func(context.Context, *asynq.Task) error { panic("end") }, guard)
		})
		if len(h.finished) != 1 || h.finished[0].Task != named(delivery(name)) || h.finished[0].State != core.StateNone {
			t.Errorf("%s: %+v", name, h.finished)
		}
	}
}

// TestHooksOfExclusive: it has no attempts and no records.
func TestHooksOfExclusive(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var h heard
	guard := asynqlock.Exclusive(d.locks.Mutex, asynqlock.ByTaskID(), h.option())
	var seen facts
	wantErrors(t, d.deliver(delivery("1"), receipt("7"), func(ctx context.Context, _ *asynq.Task) error {
		seen = factsOf(ctx)
		return errOwn
	}, guard), errOwn)
	if len(h.acquired) != 1 || h.acquired[0].Token != seen.token || seen.token == 0 || h.acquired[0].Attempt != 0 ||
		h.acquired[0].KeyHash != seen.hash {
		t.Errorf("acquired %+v, %+v", h.acquired, seen)
	}
	if len(h.finished) != 1 || h.finished[0].Attempt != 0 || h.finished[0].KeyHash != seen.hash || !errors.Is(h.finished[0].Err, errOwn) {
		t.Errorf("finished %+v", h.finished)
	}
}
