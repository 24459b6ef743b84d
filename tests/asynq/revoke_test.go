package asynq_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
)

// fails is a handler that returns err after it has said its words.
func fails(err error, words ...func(context.Context) error) asynq.HandlerFunc {
	return func(ctx context.Context, _ *asynq.Task) error {
		for _, say := range words {
			if failure := say(ctx); failure != nil {
				return failure
			}
		}
		return err
	}
}

// TestRevokedTaskLeavesNoRecord: asynq deletes a task that its handler revokes. Its key would be held for a day, and
// nobody could find out about a task that is gone.
func TestRevokedTaskLeavesNoRecord(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	wrapped := fmt.Errorf("no such user: %w", asynq.RevokeTask)
	for name, err := range map[string]error{
		"bare": asynq.RevokeTask, "wrapped": wrapped, "joined": errors.Join(asynq.SkipRetry, errOwn, wrapped),
	} {
		for mode, opts := range map[string][]asynqlock.Option{"once": nil, "at most once": {core.WithFailurePolicy(core.HoldFailures)}} {
			guard := asynqlock.Once(d.locks, asynqlock.ByPayload("order"), opts...)
			order := receipt(name + mode)
			got := d.deliver(delivery("1"), order, fails(err), guard, asynqlock.Exclusive(d.locks.Mutex, asynqlock.ByTaskID()))
			wantErrors(t, got, asynq.RevokeTask)
			if errors.Is(got, core.ErrOutcomeUnknown) {
				t.Errorf("%s, %s: of unknown outcome: %v", name, mode, got)
			}
			wantNil(t, d.deliver(delivery("2"), order, nothing, guard))
			wantNil(t, d.deliver(delivery("3"), order, again, guard))
		}
	}
}

// TestErrorsOfAsynqHeld: what each of asynq's own errors leaves behind, alone and after a word of the handler.
func TestErrorsOfAsynqHeld(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for name, test := range map[string]struct {
		handler asynq.HandlerFunc
		want    []error // of the first task
		then    error   // of the next one
	}{
		"SkipRetry":               {fails(asynq.SkipRetry), []error{asynq.SkipRetry, core.ErrOutcomeUnknown}, core.ErrOutcomeUnknown},
		"ErrHandlerNotFound":      {fails(asynq.ErrHandlerNotFound), []error{asynq.ErrHandlerNotFound}, nil},
		"Release, SkipRetry":      {fails(asynq.SkipRetry, core.Release), []error{asynq.SkipRetry}, nil},
		"Release, RevokeTask":     {fails(asynq.RevokeTask, core.Release), []error{asynq.RevokeTask}, nil},
		"Hold, RevokeTask":        {fails(asynq.RevokeTask, hold), []error{core.ErrOutcomeUnknown}, core.ErrOutcomeUnknown},
		"Hold, SkipRetry":         {fails(asynq.SkipRetry, hold), []error{core.ErrOutcomeUnknown}, core.ErrOutcomeUnknown},
		"Complete, RevokeTask":    {fails(asynq.RevokeTask, core.Complete), nil, nil},
		"both, RevokeTask counts": {fails(errors.Join(asynq.SkipRetry, asynq.RevokeTask)), []error{asynq.RevokeTask}, nil},
	} {
		guard := asynqlock.Once(d.locks, asynqlock.ByPayload("order"), core.WithFailurePolicy(core.HoldFailures))
		err := d.deliver(delivery("1"), receipt(name), test.handler, guard)
		wantErrors(t, err, test.want...)
		if test.want == nil && err != nil || test.then != nil && errors.Is(err, asynq.RevokeTask) {
			t.Errorf("%s: %v", name, err)
		}
		if err := d.deliver(delivery("2"), receipt(name), nothing, guard); !errors.Is(err, test.then) {
			t.Errorf("%s: the next one: %v, want %v", name, err, test.then)
		}
	}
}

// TestRevokedTaskWhoseLeaseWasLost: it does not come again, so it is not told as deferred.
func TestRevokedTaskWhoseLeaseWasLost(t *testing.T) {
	t.Parallel()
	var log diary
	d := newDesk(t, core.WithLogger(log.logger()))
	guard := asynqlock.Once(d.locks, asynqlock.ByTaskID(), core.WithTTL(time.Second))
	err := d.deliver(delivery("1"), receipt("7"), func(ctx context.Context, _ *asynq.Task) error {
		var deferred *asynqlock.DeferredError
		for again := true; again; { // a renewal may come in between, and the attempt continues then
			d.lapse(core.KeyHash(ctx))
			err := d.deliver(delivery("1"), receipt("7"), nothing, asynqlock.Once(d.locks, asynqlock.ByTaskID()))
			if again = errors.As(err, &deferred); !again && err != nil {
				t.Errorf("the other attempt: %v", err)
			}
		}
		<-ctx.Done() // a renewal has found the other attempt
		return asynq.RevokeTask
	}, guard)
	wantErrors(t, err, asynq.RevokeTask)
	if strings.Contains(log.String(), "was not run") || !strings.Contains(log.String(), "the work has lost its lease") {
		t.Errorf("log: %s", log.String())
	}
}

// TestRevokedTaskWhoseLockWasLost: neither does that behind Exclusive.
func TestRevokedTaskWhoseLockWasLost(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id, info := asynqlock.ByTaskID(), delivery("1")
	err := d.deliver(info, receipt("7"), func(ctx context.Context, _ *asynq.Task) error {
		_, err := d.locks.ForceUnlock(t.Context(), "asynq:"+hashOf(t, id, info, receipt("7")))
		wantNil(t, err)
		return asynq.RevokeTask
	}, asynqlock.Exclusive(d.locks.Mutex, id))
	var deferred *asynqlock.DeferredError
	if wantErrors(t, err, asynq.RevokeTask); errors.As(err, &deferred) {
		t.Errorf("deferred: %v", err)
	}
}

// TestRevokedTaskOnAsynq: the task is gone, and the next one of its key runs.
func TestRevokedTaskOnAsynq(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.serve(func(context.Context, *asynq.Task) error {
		s.effects.begin("7")
		defer s.effects.end("7", true)
		if done, _ := s.effects.of("7"); done == 0 {
			return asynq.RevokeTask
		}
		return nil
	}, asynqlock.Once(s.locks, asynqlock.ByPayload("order"), core.WithFailurePolicy(core.HoldFailures)))
	for range 3 { // revoked, run, and acknowledged
		s.enqueue(receipt("7"))
		s.awaitEmpty()
	}
	s.effects.want(t, "7", 2, 1)
	if archived := s.archived(); len(archived) > 0 {
		t.Errorf("archived: %v", archived)
	}
}
