package once_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// resolveAgain resolves a key that has no record, so that no attempt and no token tells the record from another one, and returns it.
func resolveAgain(ctx context.Context, t *testing.T, once *core.Once, value string) core.Record {
	t.Helper()
	if err := once.Resolve(ctx, core.Record{}, []byte(value)); err != nil {
		t.Fatal(err)
	}
	return coretest.MustPeek(t, once)
}

// TestSeenResolvedRecords: of two records of one key that were both resolved by hand, an operator's Forget or Resolve of the first
// does not change the second.
func TestSeenResolvedRecords(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long))
	for what, action := range map[string]func(*core.Once, core.Record) error{
		"forget":         func(o *core.Once, seen core.Record) error { return o.Forget(ctx, seen) },
		"forget running": func(o *core.Once, seen core.Record) error { return o.ForgetRunning(ctx, seen) },
		"resolve":        func(o *core.Once, seen core.Record) error { return o.Resolve(ctx, seen, []byte("third")) },
	} {
		once := locks.Once(what)
		first := resolveAgain(ctx, t, once, "first")
		if err := once.Forget(ctx, first); err != nil {
			t.Fatal(err)
		}
		second := resolveAgain(ctx, t, once, "second")
		var changed *core.CompletedError
		if err := action(once, first); !errors.As(err, &changed) || string(changed.Record.Value) != "second" || !errors.Is(err, core.ErrChanged) {
			t.Errorf("%s of the first record: %v", what, err)
		}
		if now := coretest.MustPeek(t, once); string(now.Value) != "second" {
			t.Errorf("%s of the first record has left %+v", what, now)
		}
		seen := core.Record{State: second.State, Token: second.Token, Ended: second.Ended} // all that counts
		if err := once.Forget(ctx, seen); err != nil {
			t.Errorf("Forget of the second record: %v", err)
		}
	}
}

// TestSeenWithoutEnd: a record whose end has no time, or an impossible one, can be forgotten as it was seen.
func TestSeenWithoutEnd(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb)
	for _, ended := range []string{"", "x", "-5", "0", "007", "+7", "1e3", "1.5", "inf", "9007194959773696", "9007194959773697", "99999999999999999999"} {
		name := fmt.Sprint("ended ", ended)
		if err := rdb.HSet(ctx, coretest.RecordOf(name), "state", "completed", "token", "5", "ended", ended).Err(); err != nil && !errors.Is(err, redis.Nil) {
			t.Fatal(err)
		}
		seen := coretest.MustPeek(t, locks.Once(name))
		if err := locks.Once(name).Forget(ctx, seen); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		wantStateOnly(t, locks.Once(name), core.StateNone)
	}
}

// TestResolveValue: an operator gives a completed record the value that it lacks. A value stays, and Resolve without a value changes
// no completed record. After Forget, another value can be recorded.
func TestResolveValue(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	for was, test := range map[string]struct {
		prepare func(*core.Once) error
		kept    string
	}{
		"too large": {func(o *core.Once) error {
			_, err := o.Do(ctx, func(context.Context) ([]byte, error) { return make([]byte, 100), nil })
			return err
		}, ""},
		"lost with its process": {func(*core.Once) error {
			return rdb.HSet(ctx, coretest.RecordOf("lost with its process"), "state", "running", "token", 5, "id", "client:1:1", "ttl", 1000,
				"deadline", 1, "outcome_on_expiry", "completed").Err()
		}, ""},
		"failed after Complete": {func(o *core.Once) error {
			_, err := o.Do(ctx, func(ctx context.Context) ([]byte, error) {
				return nil, errors.Join(core.Complete(ctx), errors.ErrUnsupported)
			})
			return err
		}, ""},
		"resolved without it": {func(o *core.Once) error { return o.Resolve(ctx, core.Record{}, nil) }, ""},
		"resolved":            {func(o *core.Once) error { return o.Resolve(ctx, core.Record{}, []byte("wrong")) }, "wrong"},
		"returned": {func(o *core.Once) error {
			_, err := o.Do(ctx, func(context.Context) ([]byte, error) { return []byte("first"), nil })
			return err
		}, "first"},
	} {
		once := locks.Once(was, core.WithMaxValue(64))
		if err := test.prepare(once); err != nil && !errors.Is(err, core.ErrValueTooLarge) && !errors.Is(err, errors.ErrUnsupported) {
			t.Fatalf("%s: %v", was, err)
		}
		seen := coretest.MustPeek(t, once)
		if err := once.Resolve(ctx, seen, nil); !errors.Is(err, core.ErrCompleted) || errors.Is(err, core.ErrChanged) {
			t.Errorf("%s: Resolve without a value: %v", was, err)
		}
		err := once.Resolve(ctx, seen, []byte("by hand"))
		now := coretest.MustPeek(t, once)
		if test.kept != "" {
			if !errors.Is(err, core.ErrCompleted) || string(now.Value) != test.kept {
				t.Errorf("%s: %v, %+v", was, err, now)
			}
			if err := errors.Join(once.Forget(ctx, now), once.Resolve(ctx, core.Record{}, []byte("corrected"))); err != nil {
				t.Errorf("%s: %v", was, err)
			}
			if now = coretest.MustPeek(t, once); string(now.Value) != "corrected" {
				t.Errorf("%s: %+v", was, now)
			}
			continue
		}
		if err != nil || now.State != core.StateCompleted || string(now.Value) != "by hand" || now.Omitted || now.Attempt != seen.Attempt {
			t.Errorf("%s: %v, %+v", was, err, now)
		}
		if err := once.Resolve(ctx, seen, []byte("late")); !errors.Is(err, core.ErrChanged) {
			t.Errorf("%s: Resolve of what it was: %v", was, err)
		}
		result, err := once.Do(ctx, func(context.Context) ([]byte, error) { return []byte("again"), nil })
		if err != nil || !result.Replayed || string(result.Value) != "by hand" {
			t.Errorf("%s: %+v, %v", was, result, err)
		}
	}
}
