package asynq_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// archive runs a task at most once, which fails, and returns what asynq has in its archive.
func (s *shop) archive(guard *asynqlock.Guard) *asynq.TaskInfo {
	s.t.Helper()
	s.serve(func(context.Context, *asynq.Task) error {
		s.effects.begin("7")
		done, _ := s.effects.of("7")
		defer s.effects.end("7", true)
		if done == 0 {
			return errOwn
		}
		return nil
	}, guard.Wrap)
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
	guard := newOnce(t, s.locks, asynqlock.ByPayload("order"), core.WithFailurePolicy(core.HoldFailures))
	info := s.archive(guard)
	s.run(info.ID, asynq.TaskStateArchived) // nobody has found out yet
	record, err := guard.Peek(t.Context(), info)
	if err != nil || record.State != core.StateUnknown || record.Attempt != 1 || !strings.HasPrefix(record.Note, "default/"+info.ID) ||
		record.Label != info.Type {
		t.Errorf("%+v, %v", record, err)
	}
	wantErrors(t, guard.Resolve(t.Context(), core.Record{}, nil), core.ErrInvalidName)
	wantNil(t, guard.Resolve(t.Context(), record, []byte("by hand")))
	wantErrors(t, guard.Resolve(t.Context(), record, nil), core.ErrChanged)
	wantErrors(t, guard.Resolve(t.Context(), record, nil), core.ErrCompleted)
	wantErrors(t, guard.Forget(t.Context(), record), core.ErrChanged)
	if done := s.run(info.ID, asynq.TaskStateCompleted); string(done.Result) != "by hand" {
		t.Errorf("result %q", done.Result)
	}
	s.effects.want(t, "7", 1, 1)
}

// forgetRunning deletes the record of a task that runs.
func forgetRunning(ctx context.Context, locks *core.Client, key asynqlock.KeyFunc, info *asynq.TaskInfo) error {
	guard, err := asynqlock.NewOnce(locks, key)
	if err != nil {
		return err
	}
	seen, err := guard.Peek(ctx, info)
	if err != nil {
		return err
	}
	return locks.Once(seen.Key).ForgetRunning(ctx, seen)
}

// TestForget: an operator has found out that it did not.
func TestForget(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	guard := newOnce(t, s.locks, asynqlock.ByPayload("order"), core.WithFailurePolicy(core.HoldFailures))
	info := s.archive(guard)
	seen, err := guard.Peek(t.Context(), info)
	wantNil(t, err)
	wantNil(t, guard.Forget(t.Context(), seen))
	if record, err := guard.Peek(t.Context(), info); err != nil || record.State != core.StateNone {
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

// TestOperatorsArguments: a guard that was not made by NewOnce, a missing task and a task without a key are errors.
func TestOperatorsArguments(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	info := delivery("1", ofKind)
	made := newOnce(t, d.locks, asynqlock.ByPayload("user"))
	for name, test := range map[string]struct {
		guard *asynqlock.Guard
		info  *asynq.TaskInfo
		want  string
	}{
		"nil guard":  {nil, info, "make it with NewOnce"},
		"zero guard": {new(asynqlock.Guard), info, "make it with NewOnce"},
		"nil task":   {made, nil, "the task is nil"},
		"no key":     {made, info, "no key in the task"},
	} {
		if _, err := test.guard.Peek(t.Context(), test.info); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
		for _, key := range []string{"", "order:7"} {
			want := test.want
			if test.guard == made {
				want = "pass what Peek returned"
			}
			seen := core.Record{Key: key, State: core.StateUnknown}
			for _, err := range []error{test.guard.Forget(t.Context(), seen), test.guard.Resolve(t.Context(), seen, nil)} {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s, record of %q: %v, want %s", name, key, err, want)
				}
			}
		}
	}
}

// TestZeroGuardWrapPanics: a handler behind a guard that was not made by NewOnce would run unguarded.
func TestZeroGuardWrapPanics(t *testing.T) {
	t.Parallel()
	for name, guard := range map[string]*asynqlock.Guard{"nil": nil, "zero": new(asynqlock.Guard)} {
		if got := panicOf(func() { guard.Wrap(asynq.HandlerFunc(nothing)) }); !strings.Contains(got, "make it with NewOnce") {
			t.Errorf("%s guard: panic %q", name, got)
		}
	}
}

// TestGuardCarriesItsSecret: the guard that another process makes with the secret of the workers finds their record and
// changes it, and a guard without the secret finds none.
func TestGuardCarriesItsSecret(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	info, key, secret := delivery("1", ofKind), asynqlock.ByTaskID(), asynqlock.WithKeySecret(make([]byte, 16))
	worker := asynqlock.Once(d.locks, key, secret, core.WithFailurePolicy(core.HoldFailures))
	wantErrors(t, d.deliver(info, receipt("7"), func(context.Context, *asynq.Task) error { return errOwn }, worker), core.ErrOutcomeUnknown)

	elsewhere := clientOf(t, d.redis.Client())
	operator := newOnce(t, elsewhere, key, secret, core.WithFailurePolicy(core.HoldFailures))
	seen, err := operator.Peek(t.Context(), info)
	if err != nil || seen.State != core.StateUnknown {
		t.Fatalf("%+v, %v, want the record of the run", seen, err)
	}
	if r, err := newOnce(t, elsewhere, key).Peek(t.Context(), info); err != nil || r.State != core.StateNone {
		t.Errorf("%+v, %v without the secret, want no record", r, err)
	}
	wantNil(t, operator.Resolve(t.Context(), seen, nil))
	wantNil(t, d.deliver(info, receipt("7"), mustNotRun(t, "a resolved task"), worker))
	if seen, err = operator.Peek(t.Context(), info); err != nil || seen.State != core.StateCompleted {
		t.Errorf("%+v, %v after Resolve", seen, err)
	}
	wantNil(t, operator.Forget(t.Context(), seen))
	ran := false
	wantNil(t, d.deliver(info, receipt("7"), func(context.Context, *asynq.Task) error { ran = true; return nil }, worker))
	if !ran {
		t.Error("the task did not run after Forget")
	}
}

// TestOperatorsTask: a key of type, payload, header, ID or queue is found from what asynq's Inspector returns.
func TestOperatorsTask(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	guard := newOnce(t, s.locks, asynqlock.Keys(asynqlock.ByType(), asynqlock.ByPayload("order"), asynqlock.ByHeader("K"), asynqlock.ByTaskID()))
	s.serve(func(context.Context, *asynq.Task) error { return nil }, guard.Wrap)
	task := asynq.NewTaskWithHeaders(kind, receipt("7").Payload(), map[string]string{"K": "1"})
	info := s.awaitState(s.enqueue(task, keep).ID, asynq.TaskStateCompleted)
	if r, err := guard.Peek(t.Context(), info); err != nil || r.State != core.StateCompleted {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestConstructorsAreIdle: making a guard starts no goroutine and sends nothing to Redis, so a process can make one for
// Peek, Resolve and Forget alone. The bubble would not end before a goroutine of the constructor.
func TestConstructorsAreIdle(t *testing.T) {
	t.Parallel()
	var dials atomic.Int32
	rdb := redis.NewClient(&redis.Options{Dialer: func(context.Context, string, string) (net.Conn, error) {
		dials.Add(1)
		return nil, errOwn
	}})
	t.Cleanup(func() { _ = rdb.Close() })
	locks := clientOf(t, rdb, core.WithLogger(nil))
	before := dials.Load()
	var runs asynqlock.Runs
	construct := func(t *testing.T) {
		opts := []asynqlock.Option{asynqlock.WithRuns(&runs), asynqlock.WithKeySecret(make([]byte, 16)), asynqlock.FailOpen()}
		guard := newOnce(t, locks, asynqlock.ByTaskID(), opts...)
		guard.Wrap(asynq.HandlerFunc(nothing))
		if _, err := asynqlock.NewExclusive(locks.Mutex, asynqlock.ByTaskID(), append(opts, asynqlock.WithLine(rdb))...); err != nil {
			t.Error(err)
		}
	}
	construct(t)
	wantNil(t, runs.Drain(t.Context()))
	if n := dials.Load() - before; n != 0 {
		t.Fatalf("%d connections", n)
	}
	synctest.Test(t, construct)
}

// TestRetention: the record of a task that has run is kept as long as the option says, and for a day without it.
func TestRetention(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for order, test := range map[string]struct {
		opts []asynqlock.Option
		want time.Duration
	}{
		"7": {nil, 24 * time.Hour},
		"8": {[]asynqlock.Option{core.WithRetention(2 * time.Hour)}, 2 * time.Hour},
	} {
		task := receipt(order)
		info := delivery(order, ofKind, func(i *asynq.TaskInfo) { i.Payload = task.Payload() })
		guard := newOnce(t, d.locks, asynqlock.ByPayload("order"), test.opts...)
		wantNil(t, d.deliver(info, task, nothing, guard.Wrap))
		record, err := guard.Peek(t.Context(), info)
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
