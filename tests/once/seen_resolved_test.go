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
