package asynq_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
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
	}, asynqlock.Once(s.locks, key, core.WithFailurePolicy(core.HoldFailures)))
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
		"WithWait(-1ns)":          {d.locks, key, info, []asynqlock.Option{core.WithWait(-1)}},
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

// TestRetention: the record of a task that has run is kept as long as the option says, and for a day without it.
func TestRetention(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	key := asynqlock.ByPayload("order")
	for order, test := range map[string]struct {
		opts []asynqlock.Option
		want time.Duration
	}{
		"7": {nil, 24 * time.Hour},
		"8": {[]asynqlock.Option{core.WithRetention(2 * time.Hour)}, 2 * time.Hour},
	} {
		task := receipt(order)
		info := delivery(order, ofKind, func(i *asynq.TaskInfo) { i.Payload = task.Payload() })
		wantNil(t, d.deliver(info, task, nothing, asynqlock.Once(d.locks, key, test.opts...)))
		record, err := asynqlock.Peek(t.Context(), d.locks, key, info)
		if err != nil || record.Retention > test.want || record.Retention < test.want-within {
			t.Errorf("order %s: kept for %v, error %v, want %v", order, record.Retention, err, test.want)
		}
	}
}

// TestNoRetriesAtAll: duplicates of a task without retries wait for it instead of being archived.
func TestNoRetriesAtAll(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		guard func(s *shop) asynq.MiddlewareFunc
		done  int
	}{
		"once": {func(s *shop) asynq.MiddlewareFunc {
			return asynqlock.Once(s.locks, asynqlock.ByPayload("order"))
		}, 1},
		"exclusive": {func(s *shop) asynq.MiddlewareFunc {
			return asynqlock.Exclusive(s.locks.Mutex, asynqlock.ByPayload("order"))
		}, 3},
	} {
		s := newShop(t)
		free := make(chan struct{})
		release := sync.OnceFunc(func() { close(free) })
		defer release()
		s.serve(s.blocking(free), test.guard(s))
		for range 3 {
			s.awaitState(s.enqueue(receipt("7"), asynq.MaxRetry(0)).ID, asynq.TaskStateActive)
		}
		release()
		s.awaitEmpty()
		s.effects.want(t, "7", test.done, 1)
		if n := len(s.archived()); n != 0 {
			t.Errorf("%s: %d archived", name, n)
		}
	}
}

// TestLastRetry: a task that has used them up waits too, and one that has not is deferred at once.
func TestLastRetry(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx, cancel := context.WithTimeout(t.Context(), within) // there is always one
	defer cancel()
	guard := asynqlock.Once(d.locks, asynqlock.ByPayload("order"))
	busy := d.occupy(delivery("1"), receipt("7"), guard)
	almost := func(info *asynq.TaskInfo) { info.Retried = info.MaxRetry - 1 }
	wantDeferred(t, deliver(ctx, delivery("2", almost), receipt("7"), nothing, guard), core.ErrInProgress)
	waited := make(chan error)
	go func() { waited <- deliver(ctx, delivery("2", lastTry), receipt("7"), nothing, guard) }()
	select {
	case err := <-waited:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(50 * time.Millisecond): // it would be back by now, mostly
	}
	wantNil(t, busy.release())
	wantNil(t, <-waited)
}

// TestLastRetryEnds: a task that waits in vain says so before its deadline, while asynq still listens.
func TestLastRetryEnds(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	guard := asynqlock.Once(d.locks, asynqlock.ByPayload("order"))
	busy := d.occupy(delivery("1"), receipt("7"), guard)
	ctx := due{t.Context(), time.Now().Add(5 * time.Second)}
	wantDeferred(t, deliver(ctx, delivery("2", lastTry), receipt("7"), nothing, guard), core.ErrInProgress)
	wantNil(t, busy.release())
}

// TestLastRetryOutage: Redis of the locks is waited for as well; asynq has another one.
func TestLastRetryOutage(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	other := testkit.Start(t)
	failed := make(chan error, 100)
	locks := clientOf(t, other.Client(), core.WithHooks(core.Hooks{
		BeginEnd: func(_ context.Context, end core.BeginEnd) { failed <- end.Err },
	}))
	other.Kill()
	s.serve(func(context.Context, *asynq.Task) error {
		s.effects.begin("7")
		s.effects.end("7", true)
		return nil
	}, asynqlock.Once(locks, asynqlock.ByTaskID()))
	s.enqueue(receipt("7"), asynq.MaxRetry(0))
	wantErrors(t, <-failed, core.ErrUnavailable)
	other.Restart()
	s.awaitEmpty()
	s.effects.want(t, "7", 1, 1)
	if n := len(s.archived()); n != 0 {
		t.Errorf("%d archived", n)
	}
}

// TestLastRetryFailOpen: a task that may run without Redis does not wait for it until there is no time left to run.
func TestLastRetryFailOpen(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	guards := []asynq.MiddlewareFunc{
		asynqlock.Once(d.locks, asynqlock.ByTaskID(), asynqlock.FailOpen()),
		asynqlock.Exclusive(d.locks.Mutex, asynqlock.ByTaskID(), asynqlock.FailOpen()),
	}
	d.redis.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), 2*within)
	defer cancel()
	ran := false
	wantNil(t, deliver(ctx, delivery("1", lastTry), receipt("7"), func(ctx context.Context, _ *asynq.Task) error {
		ran = ctx.Err() == nil && asynqlock.Degraded(ctx)
		return nil
	}, guards...))
	if !ran {
		t.Error("it did not run in time")
	}
}
