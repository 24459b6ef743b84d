package asynq_test

import (
	"context"
	"strings"
	"testing"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
)

// archive runs a task at most once, which fails, and returns what asynq has in its archive.
func (s *shop) archive(key asynqlock.KeyFunc) *asynq.TaskInfo {
	s.t.Helper()
	s.serve(func(context.Context, *asynq.Task) error {
		s.effects.begin("7")
		done, _ := s.effects.of("7")
		defer s.effects.end("7", true)
		if done == 0 {
			return errOwn
		}
		return nil
	}, asynqlock.Once(s.locks, key, asynqlock.AtMostOnce()))
	id := s.enqueue(receipt("7"), keep).ID
	info := s.awaitState(id, asynq.TaskStateArchived)
	if !strings.Contains(info.LastErr, errOwn.Error()) || !strings.Contains(info.LastErr, core.ErrOutcomeUnknown.Error()) {
		s.t.Errorf("last error %s", info.LastErr)
	}
	return info
}

// TestResolve: an operator has found out that the task took effect.
func TestResolve(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	key := asynqlock.ByPayload("order")
	info := s.archive(key)
	s.run(info.ID, asynq.TaskStateArchived) // nobody has found out yet
	record, err := asynqlock.Peek(t.Context(), s.locks, key, info)
	if err != nil || record.State != core.StateUnknown || record.Attempt != 1 || !strings.HasPrefix(record.Note, "default/"+info.ID) ||
		record.Label != info.Type {
		t.Errorf("%+v, %v", record, err)
	}
	wantErrors(t, asynqlock.Resolve(t.Context(), s.locks, key, info, core.Record{}, nil), core.ErrChanged)
	wantNil(t, asynqlock.Resolve(t.Context(), s.locks, key, info, record, []byte("by hand")))
	wantErrors(t, asynqlock.Resolve(t.Context(), s.locks, key, info, record, nil), core.ErrChanged)
	wantErrors(t, asynqlock.Resolve(t.Context(), s.locks, key, info, record, nil), core.ErrCompleted)
	wantErrors(t, asynqlock.Forget(t.Context(), s.locks, key, info, record), core.ErrChanged)
	if done := s.run(info.ID, asynq.TaskStateCompleted); string(done.Result) != "by hand" {
		t.Errorf("result %q", done.Result)
	}
	s.effects.want(t, "7", 1, 1)
}

// forgetRunning deletes the record of a task that runs.
func forgetRunning(ctx context.Context, locks *core.Client, key asynqlock.KeyFunc, info *asynq.TaskInfo) error {
	seen, err := asynqlock.Peek(ctx, locks, key, info)
	if err != nil {
		return err
	}
	return locks.Once(seen.Key).ForgetRunning(ctx, seen)
}

// TestForget: an operator has found out that it did not.
func TestForget(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	key := asynqlock.ByPayload("order")
	info := s.archive(key)
	seen, err := asynqlock.Peek(t.Context(), s.locks, key, info)
	wantNil(t, err)
	wantNil(t, asynqlock.Forget(t.Context(), s.locks, key, info, seen))
	if record, err := asynqlock.Peek(t.Context(), s.locks, key, info); err != nil || record.State != core.StateNone {
		t.Errorf("%+v, %v", record, err)
	}
	s.run(info.ID, asynq.TaskStateCompleted)
	s.effects.want(t, "7", 2, 1)
}

// run takes a task out of the archive and waits for what becomes of it.
func (s *shop) run(id string, want asynq.TaskState) *asynq.TaskInfo {
	s.t.Helper()
	processed := func() int {
		info, err := s.inspector.GetQueueInfo("default")
		if err != nil {
			s.t.Fatal(err)
		}
		return info.Processed
	}
	before := processed()
	if err := s.inspector.RunTask("default", id); err != nil {
		s.t.Fatal(err)
	}
	for processed() == before {
		if err := s.t.Context().Err(); err != nil {
			s.t.Fatal(err)
		}
	}
	return s.awaitState(id, want)
}

// TestOperatorsArguments: what is missing is refused.
func TestOperatorsArguments(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	info, key := delivery("1", ofKind), asynqlock.ByTaskID()
	for want, args := range map[string]struct {
		locks *core.Client
		key   asynqlock.KeyFunc
		info  *asynq.TaskInfo
		opts  []asynqlock.Option
	}{
		"the client is nil":       {nil, key, info, nil},
		"the key function is nil": {d.locks, nil, info, nil},
		"the task is nil":         {d.locks, key, nil, nil},
		"no key in the task":      {d.locks, asynqlock.ByPayload("user"), info, nil},
		"WithWait(-1ns)":          {d.locks, key, info, []asynqlock.Option{asynqlock.WithWait(-1)}},
	} {
		_, peek := asynqlock.Peek(t.Context(), args.locks, args.key, args.info, args.opts...)
		forget := asynqlock.Forget(t.Context(), args.locks, args.key, args.info, core.Record{}, args.opts...)
		resolve := asynqlock.Resolve(t.Context(), args.locks, args.key, args.info, core.Record{}, nil, args.opts...)
		for _, err := range []error{peek, forget, resolve} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
	}
}

// TestOperatorsNeedTheSecret: without it they see nothing.
func TestOperatorsNeedTheSecret(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	info, key, secret := delivery("1", ofKind), asynqlock.ByTaskID(), asynqlock.WithKeySecret(make([]byte, 16))
	wantNil(t, d.deliver(info, receipt("7"), nothing, asynqlock.Once(d.locks, key, secret)))
	for want, opts := range map[core.State][]asynqlock.Option{core.StateCompleted: {secret}, core.StateNone: nil} {
		if r, err := asynqlock.Peek(t.Context(), d.locks, key, info, opts...); err != nil || r.State != want {
			t.Errorf("%+v, %v, want %q", r, err, want)
		}
	}
}
