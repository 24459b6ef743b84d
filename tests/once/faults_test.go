package once_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestOnceWithoutRedis: the server is not there when a run should begin.
func TestOnceWithoutRedis(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t, testkit.AOF())
	once := holding(coretest.NewClient(t, server.Client()), "name")
	server.Kill()
	_, err := once.Do(ctx, coretest.Answers(nil, ""))
	if coretest.WantErr(t, err, core.ErrUnavailable); errors.Is(err, core.ErrInProgress) {
		t.Error(err)
	}
	_, err = once.Peek(ctx)
	coretest.WantErr(t, err, core.ErrUnavailable)
	coretest.WantErr(t, coretest.ForgetNow(ctx, once), core.ErrUnavailable)
	coretest.WantErr(t, coretest.ResolveNow(ctx, once, nil), core.ErrUnavailable)
	server.Restart()
	var ran atomic.Int64
	if got, err := once.Do(ctx, coretest.Answers(&ran, "")); err != nil || got.Attempt != 1 || ran.Load() != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestRedisDiesDuringARun: Redis is down when fn returns. Do has the value and an error, the record follows when Redis
// is back, and there is no second run.
func TestRedisDiesDuringARun(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	failure := errors.New("no")
	for name, test := range map[string]struct {
		failed error
		state  core.State
	}{"completed": {nil, core.StateCompleted}, "failed": {failure, core.StateUnknown}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testkit.Start(t, testkit.AOF())
			once := holding(coretest.NewClient(t, server.Client(), core.WithTTL(coretest.Long)), "name")
			got, err := once.Do(ctx, func(context.Context) ([]byte, error) {
				server.Kill()
				return []byte("value"), test.failed
			})
			if test.failed == nil {
				if coretest.WantErr(t, err, core.ErrUnavailable); string(got.Value) != "value" || got.Replayed {
					t.Errorf("%+v", got)
				}
			} else {
				coretest.WantErr(t, err, failure)
			}
			server.Restart()
			other := coretest.NewClient(t, server.Client()).Once("name")
			testkit.Eventually(t, coretest.Within, "the record", func() bool {
				if _, err := other.Do(ctx, coretest.Answers(nil, "")); errors.Is(err, core.ErrInProgress) {
					return false
				}
				return coretest.MustPeek(t, other).State == test.state
			})
			wantExpiries(t, server.Client())
		})
	}
}

// TestRedisRestartsDuringARun: what an append-only file keeps is enough.
func TestRedisRestartsDuringARun(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t, testkit.AOF())
	locks := coretest.NewClient(t, server.Client(), core.WithTTL(coretest.Long))
	got, err := locks.Once("name").Do(ctx, func(context.Context) ([]byte, error) {
		server.Kill()
		server.Restart()
		_, err := coretest.NewClient(t, server.Client()).Once("name").Begin(ctx)
		coretest.WantErr(t, err, core.ErrInProgress)
		return []byte("value"), nil
	})
	if err != nil || got.Attempt != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	server.Restart()
	if got, err := locks.Once("name").Do(ctx, coretest.Answers(nil, "")); err != nil || string(got.Value) != "value" {
		t.Errorf("after a restart: %+v, %v", got, err)
	}
}

// TestFrozenOnce: every call returns soon after its context has ended, and says why.
func TestFrozenOnce(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := coretest.NewClient(t, server.Client(), core.WithTTL(coretest.Long))
	once := locks.Once("name")
	a, b, c := coretest.MustBegin(t, locks.Once("a")), coretest.MustBegin(t, locks.Once("b")), coretest.MustBegin(t, locks.Once("c"))
	d := coretest.MustBegin(t, locks.Once("d"))
	server.Pause()
	for what, call := range map[string]func(context.Context) error{
		"begin": func(ctx context.Context) error { _, err := once.Begin(ctx); return err },
		"wait": func(ctx context.Context) error {
			_, err := locks.Once("w", core.WithWait(coretest.Within)).Begin(ctx)
			return err
		},
		"peek":     func(ctx context.Context) error { _, err := once.Peek(ctx); return err },
		"forget":   func(ctx context.Context) error { return once.Forget(ctx, core.Record{}) },
		"resolve":  func(ctx context.Context) error { return locks.Once("r").Resolve(ctx, core.Record{}, nil) },
		"declare":  func(ctx context.Context) error { return a.Declare(ctx, core.StateUnknown) },
		"complete": func(ctx context.Context) error { return b.Complete(ctx, nil) },
		"release":  c.Release,
		"hold":     func(ctx context.Context) error { return d.Hold(ctx, "") },
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		err := call(ctx)
		cancel()
		coretest.WantErr(t, err, core.ErrUnavailable)
		coretest.WantErr(t, err, context.DeadlineExceeded) // not that of the call's own bound
		if errors.Is(err, core.ErrInProgress) {
			t.Errorf("%s: %v", what, err)
		}
	}
	server.Resume()
	for name, state := range map[string]core.State{
		"b": core.StateCompleted, "c": core.StateNone, "d": core.StateUnknown, "name": core.StateNone,
	} {
		testkit.Eventually(t, coretest.Within, name+" to be recorded", func() bool {
			return coretest.MustPeek(t, locks.Once(name)).State == state
		})
	}
}

// TestWaitersWithoutMessages: no message reaches the waiters, and they get the value all the same.
func TestWaitersWithoutMessages(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	a := coretest.MustBegin(t, coretest.NewClient(t, coretest.Restricted(t, server, "+@all", "-publish"), core.WithTTL(coretest.Long)).Once("name"))
	locks := coretest.NewClient(t, server.Client())
	done := make(chan error, 3)
	for range cap(done) {
		go func() {
			got, err := locks.Once("name", core.WithWait(coretest.Within)).Do(ctx, coretest.Answers(nil, ""))
			if err == nil && string(got.Value) != "value" {
				err = errors.New(string(got.Value))
			}
			done <- err
		}()
	}
	testkit.Eventually(t, coretest.Within, "somebody to listen", func() bool {
		return server.Client().PubSubNumSub(ctx, "redisson_lock__channel:{lock:name}").
			Val()["redisson_lock__channel:{lock:name}"] > 0
	})
	if err := a.Complete(ctx, []byte("value")); err != nil {
		t.Fatal(err)
	}
	for range cap(done) {
		if err := coretest.Receive(t, done); err != nil {
			t.Errorf("waiter: %v", err)
		}
	}
}

// TestWaitersAreNotified of each end, by a message.
func TestWaitersAreNotified(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	for name, end := range map[string]func(*core.Attempt) error{
		"complete": func(a *core.Attempt) error { return a.Complete(ctx, nil) },
		"hold":     func(a *core.Attempt) error { return a.Hold(ctx, "") },
		"release":  func(a *core.Attempt) error { return a.Release(ctx) },
		"forget":   func(*core.Attempt) error { return coretest.ForgetNow(ctx, locks.Once("forget")) },
		"resolve": func(*core.Attempt) error {
			coretest.Abandon(t, rdb, "resolve")
			return coretest.ResolveNow(ctx, locks.Once("resolve"), nil)
		},
	} {
		a := coretest.MustBegin(t, locks.Once(name))
		told := coretest.Subscribe(t, rdb, "redisson_lock__channel:{lock:"+name+"}")
		if err := end(a); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := told(); got != "0" {
			t.Errorf("%s: message %q", name, got)
		}
	}
}

// TestWaitIsOver: the time that was given for waiting, or the context.
func TestWaitIsOver(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long))
	coretest.MustBegin(t, locks.Once("name"))
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err := locks.Once("name", core.WithWait(coretest.Within)).Begin(ctx)
	coretest.WantErr(t, err, core.ErrInProgress)
	coretest.WantErr(t, err, context.DeadlineExceeded)
	var busy *core.InProgressError
	if !errors.As(err, &busy) || busy.RetryAfter < coretest.Long-coretest.Within || errors.Is(err, core.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	_, err = locks.Once("name", core.WithWait(time.Second)).Begin(context.Background())
	if coretest.WantErr(t, err, core.ErrInProgress); errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("no context has ended: %v", err)
	}
	_, err = locks.Once("name").Begin(ctx) // over before it begins
	if coretest.WantErr(t, err, context.DeadlineExceeded); errors.Is(err, core.ErrInProgress) {
		t.Errorf("nobody was asked: %v", err)
	}
}
