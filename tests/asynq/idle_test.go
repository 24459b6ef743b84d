package asynq_test

import (
	"context"
	"testing"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
)

// TestTurnedAwayInside: the inner guard does not call the handler, so the task has done nothing, and may run when it
// comes again, also where what may have happened is held.
func TestTurnedAwayInside(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := context.Background()
	user := asynqlock.ByPayload("user")
	outer := asynqlock.Once(d.locks, asynqlock.ByTaskID(), asynqlock.AtMostOnce())
	task := asynq.NewTask(kind, []byte(`{"user":"ada"}`))
	count := 0
	handler := func(context.Context, *asynq.Task) error { count++; return nil }

	for name, inner := range map[string]asynq.MiddlewareFunc{
		"exclusive": asynqlock.Exclusive(d.locks.Mutex, user), "once": asynqlock.Once(d.locks, user),
	} {
		count = 0
		err := d.deliver(delivery("other"), task, func(context.Context, *asynq.Task) error {
			info := delivery("id-" + name)
			wantErrors(t, d.deliver(info, task, handler, outer, inner), errBusy(name))
			record, err := asynqlock.Peek(ctx, d.locks, asynqlock.ByTaskID(), withPayload(info, task))
			if err != nil || record.State != core.StateNone || record.Attempt != 1 {
				t.Errorf("%s: record %+v, %v after it was turned away", name, record, err)
			}
			return nil
		}, inner)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := d.deliver(delivery("id-"+name), task, handler, outer, inner); err != nil {
			t.Errorf("%s: when it comes again: %v", name, err)
		}
		if want := map[string]int{"exclusive": 1, "once": 0}[name]; count != want {
			t.Errorf("%s: %d runs, want %d", name, count, want)
		}
	}
	keyless := asynqlock.Exclusive(d.locks.Mutex, asynqlock.ByHeader("absent"))
	for range 2 {
		wantErrors(t, d.deliver(delivery("keyless"), task, handler, outer, keyless), asynqlock.ErrNoKey)
	}
}

// errBusy is what a guard of that kind says while another task has the key.
func errBusy(guard string) error {
	if guard == "once" {
		return core.ErrInProgress
	}
	return core.ErrNotAcquired
}

// withPayload is what an inspector tells of a task.
func withPayload(info *asynq.TaskInfo, t *asynq.Task) *asynq.TaskInfo {
	info.Type, info.Payload = t.Type(), t.Payload()
	return info
}
