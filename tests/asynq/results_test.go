package asynq_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
)

// keep lets asynq keep a task that has completed, with its result.
var keep = asynq.Retention(time.Hour)

// TestResultIsReplayed: asynq shows it for the task that ran, and for the one that did not.
func TestResultIsReplayed(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.serve(func(ctx context.Context, task *asynq.Task) error {
		s.effects.begin("7")
		defer s.effects.end("7", true)
		return asynqlock.WithResult(func(context.Context, *asynq.Task) ([]byte, error) {
			return []byte("receipt 1"), nil
		}).ProcessTask(ctx, task)
	}, asynqlock.Once(s.locks, asynqlock.ByPayload("order")))
	for range 2 {
		info := s.awaitState(s.enqueue(receipt("7"), keep).ID, asynq.TaskStateCompleted)
		if string(info.Result) != "receipt 1" {
			t.Errorf("result %q", info.Result)
		}
	}
	s.effects.want(t, "7", 1, 1)
}

// TestResultTooLarge: the task that ran has it, the record has not, and nobody has to run again.
func TestResultTooLarge(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.serve(func(ctx context.Context, _ *asynq.Task) error {
		s.effects.begin("7")
		defer s.effects.end("7", true)
		return asynqlock.SetResult(ctx, []byte("12345"))
	}, asynqlock.Once(s.locks, asynqlock.ByPayload("order"), asynqlock.WithMaxResult(4)))
	for _, want := range []string{"12345", ""} {
		info := s.awaitState(s.enqueue(receipt("7"), keep).ID, asynq.TaskStateCompleted)
		if string(info.Result) != want {
			t.Errorf("result %q, want %q", info.Result, want)
		}
	}
	s.effects.want(t, "7", 1, 1)
}

// TestSetResult: the last call counts, of the caller's bytes as they were, and only with success.
func TestSetResult(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	key := asynqlock.ByTaskID()
	guard := asynqlock.Once(d.locks, key)
	buffer := []byte("first")
	handler := func(end error) asynq.HandlerFunc {
		return func(ctx context.Context, _ *asynq.Task) error {
			wantNil(t, asynqlock.SetResult(ctx, []byte("second")))
			copy(buffer, "third")
			wantNil(t, asynqlock.SetResult(ctx, buffer))
			copy(buffer, "xxxxx")
			return end
		}
	}
	info := delivery("1", ofKind)
	wantErrors(t, d.deliver(info, receipt("7"), handler(errOwn), guard), errOwn)
	if r, err := asynqlock.Peek(t.Context(), d.locks, key, info); err != nil || len(r.Value) > 0 {
		t.Errorf("after an error: %+v, %v", r, err)
	}
	wantNil(t, d.deliver(info, receipt("7"), handler(nil), guard))
	if r, err := asynqlock.Peek(t.Context(), d.locks, key, info); err != nil || string(r.Value) != "third" {
		t.Errorf("after success: %+v, %v", r, err)
	}
}

// TestWithResultFails: an error is the handler's.
func TestWithResultFails(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	handler := asynqlock.WithResult(func(context.Context, *asynq.Task) ([]byte, error) { return []byte("x"), errOwn })
	err := d.deliver(delivery("1"), receipt("7"), handler.ProcessTask, asynqlock.Once(d.locks, asynqlock.ByTaskID()))
	wantErrors(t, err, errOwn)
	if errors.Is(err, asynqlock.ErrNotGuarded) {
		t.Errorf("%v", err)
	}
}

// TestNotGuarded: there is no record to say anything about outside of Once, nor behind Exclusive.
func TestNotGuarded(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	check := func(ctx context.Context, _ *asynq.Task) error {
		for name, err := range map[string]error{
			"SetResult": asynqlock.SetResult(ctx, nil), "Complete": asynqlock.Complete(ctx),
			"Release": asynqlock.Release(ctx), "Hold": asynqlock.Hold(ctx),
		} {
			if !errors.Is(err, asynqlock.ErrNotGuarded) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if asynqlock.Attempt(ctx) != 0 {
			t.Error("there is an attempt")
		}
		return nil
	}
	wantNil(t, check(t.Context(), nil))
	if hash := asynqlock.KeyHash(t.Context()); hash != "" || asynqlock.Degraded(t.Context()) {
		t.Errorf("a key: %s", hash)
	}
	wantNil(t, d.deliver(delivery("1"), receipt("7"), check, asynqlock.Exclusive(d.locks.Mutex, asynqlock.ByTaskID())))
	handler := asynqlock.WithResult(func(context.Context, *asynq.Task) ([]byte, error) { return nil, nil })
	wantNil(t, d.deliver(delivery("1"), receipt("7"), handler.ProcessTask)) // it has taken effect
}

// ofKind completes what an inspector would tell.
func ofKind(info *asynq.TaskInfo) {
	info.Type, info.Payload = kind, receipt("7").Payload()
}

// TestReasonIsNoData: what an operator reads in the record of a failed run is not what the handler returned.
func TestReasonIsNoData(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	guard := asynqlock.Once(d.locks, asynqlock.ByTaskID(), asynqlock.AtMostOnce())
	err := d.deliver(delivery("1"), receipt("7"), func(context.Context, *asynq.Task) error {
		return errors.New("ada@example.com")
	}, guard)
	wantErrors(t, err, asynq.SkipRetry)
	var log diary
	dump(t, d.rdb, &log)
	if text := log.String(); strings.Contains(text, "ada@") || !strings.Contains(text, "the handler returned an error") {
		t.Errorf("record: %s", text)
	}
}
