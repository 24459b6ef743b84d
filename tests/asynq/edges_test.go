package asynq_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
)

// TestPanicOfAHookReleases: the handler was not called, so the task may run at once, also with core.HoldFailures.
func TestPanicOfAHookReleases(t *testing.T) {
	t.Parallel()
	var runs asynqlock.Runs
	boom, ends := false, 0
	d := newDesk(t, core.WithHooks(core.Hooks{
		RunStart: func(ctx context.Context, _ core.RunStart) context.Context {
			if boom {
				panic("hook")
			}
			return ctx
		},
		RunEnd: func(_ context.Context, end core.RunEnd) {
			if end.Panicked {
				ends++
			}
		},
	}))
	guards := d.guardsOf(asynqlock.WithRuns(&runs))
	guards["at most once"] = asynqlock.Once(d.locks, asynqlock.ByTaskID(), core.WithFailurePolicy(core.HoldFailures))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for name, guard := range guards {
		boom, ends = true, 0
		if got := panicOf(func() { _ = d.deliver(delivery(name), receipt("7"), nothing, guard) }); got != "hook" {
			t.Errorf("%s: panic %q", name, got)
		}
		if ends != 1 {
			t.Errorf("%s: %d ends of the run were reported", name, ends)
		}
		boom = false
		if err := d.deliver(delivery(name), receipt("7"), nothing, guard); err != nil || runs.Drain(over) != nil {
			t.Errorf("%s: %v, runs %v", name, err, runs.Drain(over))
		}
	}
}

// TestDrainIncludesStartingHandlers: a task has its attempt, but its handler was not called yet.
func TestDrainIncludesStartingHandlers(t *testing.T) {
	t.Parallel()
	granted, goOn := make(chan struct{}), make(chan struct{})
	d := newDesk(t, core.WithHooks(core.Hooks{BeginEnd: func(context.Context, core.BeginEnd) { close(granted); <-goOn }}))
	var runs asynqlock.Runs
	guard := asynqlock.Once(d.locks, asynqlock.ByTaskID(), asynqlock.WithRuns(&runs))
	ended := make(chan error, 1)
	go func() { ended <- deliver(t.Context(), delivery("1"), receipt("7"), nothing, guard) }()
	<-granted
	over, cancel := context.WithCancel(t.Context())
	cancel()
	wantErrors(t, runs.Drain(over), asynqlock.ErrStillRunning)
	close(goOn)
	wantNil(t, runs.Drain(t.Context()))
	wantNil(t, <-ended)
}

// TestErrorHandlerOfTheLastAttempt: asynq asks it before it archives the task, also one that has waited in vain.
func TestErrorHandlerOfTheLastAttempt(t *testing.T) {
	t.Parallel()
	told := 0
	h := configured(func(context.Context, *asynq.Task, error) { told++ }).ErrorHandler
	busy := &asynqlock.DeferredError{Err: core.ErrInProgress}
	h.HandleError(asynqlock.ContextWithTask(t.Context(), delivery("1")), receipt("7"), busy)
	h.HandleError(asynqlock.ContextWithTask(t.Context(), delivery("1", lastTry)), receipt("7"), busy)
	if told != 1 {
		t.Errorf("told %d times, want once", told)
	}
}

// TestFingerprintIsSecretToo: whoever guesses the payload of a task cannot recognise it by its record.
func TestFingerprintIsSecretToo(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	guard := newOnce(t, d.locks, asynqlock.ByPayload("user"), asynqlock.ComparePayload(true),
		asynqlock.WithKeySecret([]byte("0123456789abcdef")))
	task := asynq.NewTask(kind, []byte(`{"user":"ada"}`))
	wantNil(t, d.deliver(delivery("1"), task, nothing, guard.Wrap))
	var text strings.Builder
	for _, part := range []string{kind, string(task.Payload())} {
		fmt.Fprintf(&text, "%s:%s", strconv.Itoa(len(part)), part)
	}
	digest := sha256.Sum256([]byte(text.String()))
	record, err := guard.Peek(t.Context(), withPayload(delivery("1"), task))
	if err != nil || len(record.Fingerprint) == 0 || bytes.HasPrefix(digest[:], record.Fingerprint) {
		t.Errorf("fingerprint %q, %v", record.Fingerprint, err)
	}
}

// TestLeasesOfTheHandlersOwn: that one of them was lost says nothing about the task's.
func TestLeasesOfTheHandlersOwn(t *testing.T) {
	t.Parallel()
	d, hooks := listening(t)
	other := fmt.Errorf("a lock of the handler's own: %w", core.ErrLeaseLost)
	for name, guard := range d.guardsOf() {
		err := d.deliver(delivery(name), receipt("7"), func(context.Context, *asynq.Task) error { return other }, guard)
		if !isFailure(err) || len(hooks.incidents) > 0 {
			t.Errorf("%s: not a failure: %v; told %v", name, err, hooks.incidents)
		}
	}
}

// TestNoHandler: in a rollout a server gets tasks that only others know. They have not run.
func TestNoHandler(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	guard := asynqlock.Once(d.locks, asynqlock.ByTaskID(), core.WithFailurePolicy(core.HoldFailures))
	old := asynq.NewServeMux()
	old.Use(guard)
	ctx := asynqlock.ContextWithTask(t.Context(), delivery("1"))
	wantErrors(t, old.ProcessTask(ctx, receipt("7")), asynq.ErrHandlerNotFound)
	wantNil(t, d.deliver(delivery("1"), receipt("7"), nothing, guard))
}
