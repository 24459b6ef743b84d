package guardconformance

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

var errEffect = errors.New("the function failed")

func testRuns(t *testing.T, s *stage) {
	var token int64
	var hash string
	deliver := s.with(func(ctx context.Context, payload string) (string, error) {
		token, _ = core.TokenFrom(ctx)
		hash = core.KeyHash(ctx)
		if guard.Degraded(ctx) {
			t.Error("degraded")
		}
		return payload, nil
	})
	if got := s.send(deliver, Ran); got.Value != "payload" {
		t.Errorf("value %q", got.Value)
	}
	end := s.wantRuns(1)
	if start := s.told.starts[0]; start.Token == 0 || start.Token != token || end.Token != token {
		t.Errorf("token %d, hooks were told %d and %d", token, start.Token, end.Token)
	}
	want := core.RunEnd{State: core.StateNone}
	if s.kind == Once {
		want = core.RunEnd{State: core.StateCompleted, Attempt: 1}
		if hash != end.KeyHash {
			t.Errorf("key hash %q, hooks were told %q", hash, end.KeyHash)
		}
	}
	if end.State != want.State || end.Attempt != want.Attempt || end.Err != nil || end.Panicked || end.Took <= 0 {
		t.Errorf("end %+v, want %+v", end, want)
	}
	if len(s.told.nots)+len(s.told.incidents) > 0 {
		t.Errorf("hooks were told %+v, %+v", s.told.nots, s.told.incidents)
	}
}

func testReplay(t *testing.T, s *stage) {
	var ran atomic.Int64
	deliver := s.with(counted(&ran))
	s.send(deliver, Ran)
	if got := s.send(deliver, again...); got.Code == Replayed && got.Value != "payload" {
		t.Errorf("value %q", got.Value)
	}
	if not := s.wantNots(1); not.Reason == core.ReasonReplayed && (not.Err != nil || not.Attempt != 1) || not.Reason == "" {
		t.Errorf("%+v", not)
	}
	s.send(s.other(counted(&ran)), again...)
	if ran.Load() != 1 {
		t.Errorf("ran %d times", ran.Load())
	}
}

// testOmitted: a run has completed, and its value is not in the record. That is no empty value.
func testOmitted(t *testing.T, s *stage) {
	t.Run("TooLarge", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, s.place, s.kind)
		large := strings.Repeat("large ", 1000)
		deliver := s.with(func(context.Context, string) (string, error) { return large, nil }, core.WithMaxValue(1000))
		if got := s.send(deliver, Ran); got.Value != large {
			t.Errorf("a value of %d bytes, want all %d", len(got.Value), len(large))
		}
		s.send(deliver, Completed)
		s.send(s.other(counted(new(atomic.Int64)), core.WithMaxValue(1000)), Completed)
		s.wantRuns(1)
	})
	t.Run("LostWithItsProcess", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, s.place, s.kind)
		second, ran := s.crash(func(ctx context.Context) {
			if err := core.Complete(ctx); err != nil {
				t.Error(err)
			}
		})
		s.sendUntil(second, Replayed, Completed)
		s.send(second, Completed)
		if ran.Load() != 0 {
			t.Errorf("ran %d times", ran.Load())
		}
	})
}

func testFree(t *testing.T, s *stage) {
	var ran atomic.Int64
	deliver := s.with(counted(&ran))
	s.send(deliver, Ran)
	s.send(deliver, Ran)
	s.wantRuns(2)
}

// failing returns a function that fails at its first call.
func failing(fail func(ctx context.Context) error) Func {
	var ran atomic.Int64
	return func(ctx context.Context, payload string) (string, error) {
		if ran.Add(1) == 1 {
			return "", fail(ctx)
		}
		return payload, nil
	}
}

func fails(context.Context) error { return errEffect }

func testFailure(t *testing.T, s *stage) {
	deliver := s.with(failing(fails))
	s.send(deliver, Failed)
	if end := s.wantRuns(1); end.State != core.StateNone || end.Err == nil {
		t.Errorf("%+v", end)
	}
	s.send(deliver, Ran)
	if end := s.wantRuns(2); end.Attempt != 2 {
		t.Errorf("%+v", end)
	}
}

func testHeldFailure(t *testing.T, s *stage) {
	deliver := s.with(failing(fails), core.WithFailurePolicy(core.HoldFailures))
	s.send(deliver, Failed, Unknown)
	if end := s.wantRuns(1); end.State != core.StateUnknown {
		t.Errorf("%+v", end)
	}
	s.send(deliver, Unknown)
	s.send(s.other(failing(fails), core.WithFailurePolicy(core.HoldFailures)), Unknown)
	if not := s.wantNots(1); !errors.Is(not.Err, core.ErrOutcomeUnknown) {
		t.Errorf("%+v", not)
	}
	if n := s.lines("outcome"); n != 1 || s.lines("reason=") != 1 {
		t.Errorf("%d lines:\n%s", n, s.log)
	}
}

func panics(context.Context) error { panic("the function panics") }

func exits(context.Context) error {
	runtime.Goexit()
	return nil
}

func testPanic(t *testing.T, s *stage)  { testNotReturned(t, s, panics) }
func testGoexit(t *testing.T, s *stage) { testNotReturned(t, s, exits) }

func testNotReturned(t *testing.T, s *stage, fail func(context.Context) error) {
	deliver := s.with(failing(fail))
	s.send(deliver, Broken)
	if end := s.wantRuns(1); !end.Panicked || end.State != core.StateNone {
		t.Errorf("%+v", end)
	}
	s.send(deliver, Ran)
}

func testHeldPanic(t *testing.T, s *stage) {
	deliver := s.with(failing(panics), core.WithFailurePolicy(core.HoldFailures))
	s.send(deliver, Broken)
	if end := s.wantRuns(1); !end.Panicked || end.State != core.StateUnknown {
		t.Errorf("%+v", end)
	}
	s.send(deliver, Unknown)
}

func testHookPanic(t *testing.T, s *stage) {
	var armed atomic.Bool
	armed.Store(true)
	locks, err := core.New(s.server.Client(), core.WithLogger(nil), core.WithHooks(core.Hooks{
		RunStart: func(ctx context.Context, _ core.RunStart) context.Context {
			if armed.Swap(false) {
				panic("the hook panics")
			}
			return nil
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	var ran atomic.Int64
	deliver := s.withClient(locks, counted(&ran))
	s.send(deliver, Broken)
	s.send(deliver, Ran)
	if ran.Load() != 1 {
		t.Errorf("ran %d times", ran.Load())
	}
}

func testComplete(t *testing.T, s *stage) {
	deliver := s.with(failing(func(ctx context.Context) error {
		if err := core.Complete(ctx); err != nil {
			t.Error(err)
		}
		panic("after the effect")
	}))
	s.send(deliver, Broken)
	s.send(deliver, again...)
	if end := s.wantRuns(1); end.State != core.StateCompleted {
		t.Errorf("%+v", end)
	}
}

// testReleaseAfterComplete: a run that has taken effect has not done nothing, whatever a deferred Release says.
func testReleaseAfterComplete(t *testing.T, s *stage) {
	deliver := s.with(failing(func(ctx context.Context) error {
		if err := core.Complete(ctx); err != nil {
			t.Error(err)
		}
		if err := core.Release(ctx); !errors.Is(err, core.ErrCompleted) {
			t.Errorf("Release after Complete: %v", err)
		}
		panic("after the effect")
	}))
	s.send(deliver, Broken)
	s.send(deliver, again...)
	if end := s.wantRuns(1); end.State != core.StateCompleted {
		t.Errorf("%+v", end)
	}
}

func testRelease(t *testing.T, s *stage) {
	deliver := s.with(failing(core.Release), core.WithFailurePolicy(core.HoldFailures))
	s.send(deliver, Ran)
	s.send(deliver, Ran)
	s.send(deliver, again...)
	s.wantRuns(2)
}

func testHold(t *testing.T, s *stage) {
	deliver := s.with(failing(func(ctx context.Context) error { return core.Hold(ctx, "ask the bank") }))
	s.send(deliver, Ran, Unknown)
	s.send(deliver, Unknown)
	var unknown *core.OutcomeUnknownError
	if not := s.wantNots(1); !errors.As(not.Err, &unknown) || unknown.Record.Reason != "ask the bank" {
		t.Errorf("%+v", not)
	}
}

func testNotGuarded(t *testing.T, s *stage) {
	s.send(s.with(func(ctx context.Context, payload string) (string, error) {
		if err := core.Complete(ctx); !errors.Is(err, core.ErrNotGuarded) {
			t.Error(err)
		}
		return payload, nil
	}), Ran)
}

func testNoKey(t *testing.T, s *stage) {
	var ran atomic.Int64
	s.want(s.with(counted(&ran))(t.Context(), "", "payload"), NoKey)
	if not := s.wantNots(1); ran.Load() != 0 || not.Err == nil || not.KeyHash != "" {
		t.Errorf("%+v", not)
	}
}

func testOptionalKey(t *testing.T, s *stage) {
	var ran atomic.Int64
	deliver := s.with(counted(&ran), guard.OptionalKey())
	s.want(deliver(t.Context(), "", "payload"), Ran)
	s.want(deliver(t.Context(), "", "payload"), Ran)
	if ran.Load() != 2 || len(s.told.names)+len(s.told.starts)+len(s.told.nots) > 0 {
		t.Errorf("ran %d times, hooks were told %+v", ran.Load(), s.told)
	}
}

func testMismatch(t *testing.T, s *stage) {
	var ran atomic.Int64
	deliver := s.with(counted(&ran))
	s.send(deliver, Ran)
	s.want(deliver(t.Context(), "key", "another payload"), Mismatch)
	if not := s.wantNots(1); !errors.Is(not.Err, core.ErrFingerprintMismatch) || ran.Load() != 1 {
		t.Errorf("%+v", not)
	}
}

func testWrongType(t *testing.T, s *stage) {
	rdb, ran := s.server.Client(), 0
	deliver := s.with(func(context.Context, string) (string, error) {
		ran++
		for key := range testkit.Stored(t, rdb, "*"+s.name()+"*") {
			if err := rdb.Del(t.Context(), key).Err(); err != nil {
				t.Error(err)
			}
			if err := rdb.LPush(t.Context(), key, "foreign").Err(); err != nil {
				t.Error(err)
			}
		}
		return "", core.ErrNotAcquired // which is the function's own
	})
	s.send(deliver, Failed)
	s.send(deliver, Erroneous, Unavailable, Failed)
	if not := s.wantNots(1); !errors.Is(not.Err, core.ErrWrongType) || ran != 1 {
		t.Errorf("%+v, ran %d times", not, ran)
	}
}

func testBusy(t *testing.T, s *stage) {
	fn, began, end := blocking(t)
	deliver := s.with(fn)
	first := s.begin(deliver)
	await(t, began, "the first")
	s.send(deliver, Busy)
	s.send(s.other(fn), Busy)
	if not := s.wantNots(1); not.Reason == "" || !errors.Is(not.Err, core.ErrInProgress) && !errors.Is(not.Err, core.ErrNotAcquired) {
		t.Errorf("%+v", not)
	}
	end <- nil
	s.end(first, Ran)
}

func testWaits(t *testing.T, s *stage) {
	fn, began, end := blocking(t)
	deliver := s.with(fn, core.WithWait(patience))
	first := s.begin(deliver)
	await(t, began, "the first")
	second := s.begin(deliver)
	testkit.Eventually(t, patience, "the second", func() bool {
		s.told.mu.Lock()
		defer s.told.mu.Unlock()
		return len(s.told.names) > 1
	})
	end <- nil
	s.end(first, Ran)
	if s.kind == Once {
		s.end(second, again...)
		return
	}
	await(t, began, "the second")
	end <- nil
	s.end(second, Ran)
	if s.told.starts[1].Waited <= 0 {
		t.Errorf("%+v", s.told.starts[1])
	}
}

// testLeavesWaiting: a sender that leaves is no failure of the guard, and its item does not run later.
func testLeavesWaiting(t *testing.T, s *stage) {
	fn, began, end := blocking(t)
	deliver := s.with(fn, core.WithWait(patience))
	first := s.begin(deliver)
	await(t, began, "the first")
	second := s.begin(deliver)
	testkit.Eventually(t, patience, "the second to wait", func() bool { return len(s.asked()) > 1 })
	second.cancel()
	s.result(second)
	testkit.Eventually(t, patience, "the end of the wait", func() bool {
		s.told.mu.Lock()
		defer s.told.mu.Unlock()
		return len(s.told.nots) > 0
	})
	if not := s.wantNots(1); !slices.Contains(ended, not.Reason) || !errors.Is(not.Err, context.Canceled) {
		t.Errorf("hooks were told %+v, want one of the reasons %q", not, ended)
	}
	end <- nil
	s.end(first, Ran)
	s.wantRuns(1)
	if strings.Contains(s.log.String(), "was not run") {
		t.Errorf("the log has a failure of the guard:\n%s", s.log)
	}
}

// ended are the reasons for an item whose context has ended: of any place, of one that has clients, and of a scheduler.
var ended = []string{guard.ReasonEnded, "client-gone", "stopped"}

func testSlow(t *testing.T, s *stage) {
	const ttl = 3 * time.Second // a busy machine renews in time
	fn, began, end := blocking(t)
	deliver := s.with(fn, core.WithTTL(ttl))
	first := s.begin(deliver)
	ctx := await(t, began, "the run")
	select {
	case <-ctx.Done():
		t.Error(context.Cause(ctx))
	case <-time.After(ttl * 5 / 4):
	}
	s.send(s.other(fn, core.WithTTL(ttl)), Busy)
	end <- nil
	s.end(first, Ran)
}
