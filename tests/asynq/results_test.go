package asynq_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
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

// TestResultOfProof: what a task commits with its proof is its result, unless the handler sets another one.
func TestResultOfProof(t *testing.T) {
	t.Parallel()
	s, p := newShop(t), coretest.NewProof()
	s.serve(func(ctx context.Context, task *asynq.Task) error {
		if _, err := p.InTx(ctx, "receipt 1"); err != nil {
			return err
		}
		if strings.Contains(string(task.Payload()), "8") {
			return asynqlock.SetResult(ctx, []byte("receipt 2"))
		}
		return nil
	}, asynqlock.Once(s.locks, asynqlock.ByPayload("order"), core.WithProof(p)))
	for order, want := range map[string]string{"7": "receipt 1", "8": "receipt 2"} {
		for range 2 {
			info := s.awaitState(s.enqueue(receipt(order), keep).ID, asynq.TaskStateCompleted)
			if string(info.Result) != want {
				t.Errorf("result %q, want %q", info.Result, want)
			}
		}
	}
}

// TestResultTooLarge: the task that ran has it, the record has not, and nobody has to run again.
func TestResultTooLarge(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.serve(func(ctx context.Context, _ *asynq.Task) error {
		s.effects.begin("7")
		defer s.effects.end("7", true)
		return asynqlock.SetResult(ctx, []byte("12345"))
	}, asynqlock.Once(s.locks, asynqlock.ByPayload("order"), core.WithMaxValue(4)))
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
	guard := newOnce(t, d.locks, asynqlock.ByTaskID())
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
	wantErrors(t, d.deliver(info, receipt("7"), handler(errOwn), guard.Wrap), errOwn)
	if r, err := guard.Peek(t.Context(), info); err != nil || len(r.Value) > 0 {
		t.Errorf("after an error: %+v, %v", r, err)
	}
	wantNil(t, d.deliver(info, receipt("7"), handler(nil), guard.Wrap))
	if r, err := guard.Peek(t.Context(), info); err != nil || string(r.Value) != "third" {
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
	if errors.Is(err, core.ErrNotGuarded) {
		t.Errorf("%v", err)
	}
}

// TestNotGuarded: there is no record to say anything about outside of Once, nor behind Exclusive.
func TestNotGuarded(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	check := func(ctx context.Context, _ *asynq.Task) error {
		for name, err := range map[string]error{
			"SetResult": asynqlock.SetResult(ctx, nil), "Complete": core.Complete(ctx),
			"Release": core.Release(ctx), "Hold": core.Hold(ctx, "the handler says so"),
		} {
			if !errors.Is(err, core.ErrNotGuarded) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if attemptOf(ctx) != 0 {
			t.Error("there is an attempt")
		}
		return nil
	}
	wantNil(t, check(t.Context(), nil))
	if hash := core.KeyHash(t.Context()); hash != "" || asynqlock.Degraded(t.Context()) {
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
	guard := asynqlock.Once(d.locks, asynqlock.ByTaskID(), core.WithFailurePolicy(core.HoldFailures))
	err := d.deliver(delivery("1"), receipt("7"), func(context.Context, *asynq.Task) error {
		return errors.New("ada@example.com")
	}, guard)
	wantErrors(t, err, asynq.SkipRetry)
	var log diary
	dump(t, d.rdb, &log)
	if text := log.String(); strings.Contains(text, "ada@") || !strings.Contains(text, "the function failed") {
		t.Errorf("record: %s", text)
	}
}

// TestPeriodicTaskWithAFixedID: a scheduler enqueues each run under one ID, which is asynq's advice for several
// schedulers. ByTaskID takes every run for a redelivery of the first, and the log says so. PerPeriod tells them apart.
func TestPeriodicTaskWithAFixedID(t *testing.T) {
	t.Parallel()
	const runs = 3
	for name, test := range map[string]struct {
		key  func() asynqlock.KeyFunc
		want int
	}{
		"ByTaskID":  {asynqlock.ByTaskID, 1},
		"PerPeriod": {func() asynqlock.KeyFunc { return asynqlock.PerPeriod(asynqlock.ByType(), time.Millisecond) }, runs},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			var log diary
			s.serve(func(context.Context, *asynq.Task) error {
				s.effects.begin("report")
				s.effects.end("report", true)
				return nil
			}, asynqlock.Once(s.newLocks(core.WithLogger(log.logger())), test.key()))
			for range runs {
				s.enqueue(receipt("7"), asynq.TaskID("report"))
				s.awaitEmpty()
			}
			s.effects.want(t, "report", test.want, 1)
			wantReusedID(t, log.String(), test.want < runs)
		})
	}
}

// wantReusedID checks that a run which was lost to a fixed ID is notified of once.
func wantReusedID(t *testing.T, log string, lost bool) {
	t.Helper()
	want := 0
	if lost {
		want = 1
	}
	if n := strings.Count(log, "level=WARN"); n != want {
		t.Errorf("%d warnings, want %d: %s", n, want, log)
	}
	for _, part := range []string{"acknowledged without running", "label=" + kind, "queue=default", "task=report", "ByTick"} {
		if lost && !strings.Contains(log, part) {
			t.Errorf("%s is not told: %s", part, log)
		}
	}
}

// TestReplaysAreLogged: a lost run at once and as a warning, an expected duplicate as news, a redelivery not at all.
func TestReplaysAreLogged(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		second *asynq.TaskInfo
		want   string
	}{
		"reused ID":  {delivery("1"), "level=WARN"},
		"duplicate":  {delivery("2"), "level=INFO"},
		"redelivery": {delivery("1", func(info *asynq.TaskInfo) { info.Retried = 1 }), ""},
		"without ID": {delivery(""), ""},
	} {
		var log diary
		d := newDesk(t, core.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		guard := asynqlock.Once(d.locks, asynqlock.ByPayload("order"))
		wantNil(t, d.deliver(delivery("1"), receipt("7"), nothing, guard))
		for range 3 {
			wantNil(t, d.deliver(test.second, receipt("7"), again, guard))
		}
		if got := log.String(); !strings.Contains(got, test.want) || strings.Count(got, "\n") != min(len(test.want), 1) {
			t.Errorf("%s: log %q, want %q once", name, got, test.want)
		}
		if _, rest, logged := strings.Cut(log.String(), "key_hash="); logged != (test.want != "") {
			t.Errorf("%s: no key_hash in %s", name, log.String())
		} else if hash, _, _ := strings.Cut(rest, " "); logged {
			found := 0
			for m, err := range seal.NamesOf(d.locks).FindDigest(t.Context(), hash) {
				if found++; err != nil || !m.Record || m.Name != "asynq:"+hash {
					t.Errorf("%s: %s is that of %+v, %v", name, hash, m, err)
				}
			}
			if found != 1 {
				t.Errorf("%s: %d records have the hash %s of the log", name, found, hash)
			}
		}
	}
}
