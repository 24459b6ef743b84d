package once_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

func TestQuota(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	of := func(user string, i int) *core.Once {
		return locks.Once(fmt.Sprintf("pay:{%s}:%d", user, i), core.WithQuota(3), core.WithRetention(time.Hour))
	}
	running, released, completed := coretest.MustBegin(t, of("ada", 1)), coretest.MustBegin(t, of("ada", 2)), coretest.MustBegin(t, of("ada", 3))
	if err := completed.Complete(ctx, nil); err != nil {
		t.Fatal(err)
	}
	_, err := of("ada", 4).Begin(ctx)
	coretest.WantErr(t, err, core.ErrTooManyKeys)
	var full *core.TooManyKeysError
	if !errors.As(err, &full) || full.RetryAfter <= time.Hour-coretest.Within || full.RetryAfter > time.Hour {
		t.Errorf("error %v", err)
	}
	if r := coretest.MustPeek(t, of("ada", 4)); r.State != core.StateNone || r.Attempt != 0 {
		t.Errorf("what was refused has left %+v", r)
	}
	// Those that are there are no new ones, and others have a room of their own.
	_, err = of("ada", 3).Begin(ctx)
	coretest.WantErr(t, err, core.ErrCompleted)
	_, err = of("ada", 1).Begin(ctx)
	coretest.WantErr(t, err, core.ErrInProgress)
	coretest.MustBegin(t, of("bob", 1))

	if err := released.Release(ctx); err != nil {
		t.Fatal(err)
	}
	held := coretest.MustBegin(t, of("ada", 4))
	_, err = of("ada", 5).Begin(ctx)
	coretest.WantErr(t, err, core.ErrTooManyKeys)
	if err := held.Hold(ctx, ""); err != nil {
		t.Fatal(err)
	}
	_, err = of("ada", 5).Begin(ctx)
	coretest.WantErr(t, err, core.ErrTooManyKeys)
	if err := coretest.ForgetNow(ctx, of("ada", 4)); err != nil {
		t.Fatal(err)
	}
	fifth := coretest.MustBegin(t, of("ada", 5))
	if left := rdb.PTTL(ctx, "holdfast:group:{ada}:lock:").Val(); left <= 0 || left > time.Hour {
		t.Errorf("the group is kept for %v", left)
	}
	// Time passes.
	rdb.ZAdd(ctx, "holdfast:group:{ada}:lock:", redis.Z{Score: 1, Member: "holdfast:once=lock:pay:{ada}:3"})
	coretest.MustBegin(t, of("ada", 6))
	for _, a := range []*core.Attempt{running, fifth} {
		if err := a.Complete(ctx, nil); err != nil {
			t.Error(err)
		}
	}
	_, err = of("ada", 7).Begin(ctx)
	coretest.WantErr(t, err, core.ErrTooManyKeys)
}

func TestQuotaNeedsAGroup(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	for _, once := range []*core.Once{
		locks.Once("no braces", core.WithQuota(1)), locks.Once("{a}", core.WithQuota(-1)),
	} {
		_, err := once.Begin(context.Background())
		coretest.WantErr(t, err, core.ErrInvalidOption)
	}
	coretest.MustBegin(t, locks.Once("no braces", core.WithQuota(0)))
}

// besiege calls run with so many numbers, some at a time.
func besiege(n int, run func(i int)) {
	const crew = 16
	var all sync.WaitGroup
	for worker := range crew {
		all.Go(func() {
			for i := worker; i < n; i += crew {
				run(i)
			}
		})
	}
	all.Wait()
}

// TestQuotaBoundsNewKeys plays a client that chooses ever new keys, whose runs fail, complete, or lose their lease
// and are followed by some that fail. However many there are, Redis keeps no more than the quota says.
func TestQuotaBoundsNewKeys(t *testing.T) {
	t.Parallel()
	const attempts, quota = 800, 20
	ctx := context.Background()
	for how, end := range map[string]func(*redis.Client, *core.Once, *core.Attempt) error{
		"fail":     func(_ *redis.Client, _ *core.Once, a *core.Attempt) error { return a.Release(ctx) },
		"complete": func(_ *redis.Client, _ *core.Once, a *core.Attempt) error { return a.Complete(ctx, nil) },
		"overtaken, and fail": func(rdb *redis.Client, o *core.Once, _ *core.Attempt) error {
			if err := rdb.HSet(ctx, coretest.RecordOf(o.Key()), "deadline", 0).Err(); err != nil {
				return err
			}
			next, err := o.Begin(ctx)
			if err != nil {
				return err
			}
			return next.Release(ctx)
		},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			rdb := testkit.Start(t).Client()
			locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
			besiege(attempts, func(i int) {
				once := locks.Once(fmt.Sprintf("{ada}:%d", i), core.WithQuota(quota))
				a, err := once.Begin(ctx)
				if errors.Is(err, core.ErrTooManyKeys) {
					return
				}
				if err == nil {
					err = end(rdb, once, a)
				}
				if err != nil {
					t.Error(err)
				}
			})
			if keys, _ := lasting(t, rdb); len(keys) > quota+2 {
				t.Errorf("%d keys, though %d records are allowed, with their group and its token", len(keys), quota)
			}
			if n := rdb.ZCard(ctx, groupOf("ada")).Val(); n > quota || how == "fail" && n != 0 {
				t.Errorf("%d records count", n)
			}
			wantExpiries(t, rdb)
		})
	}
}

// TestGroupTakesOutWhatHasExpired: expired records leave the count, whatever their size, some with each attempt.
func TestGroupTakesOutWhatHasExpired(t *testing.T) {
	t.Parallel()
	const gone = 250
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	for i := range gone {
		size := float64(40 + i%20) // its class
		rdb.ZAdd(ctx, groupOf("a"), redis.Z{Score: size*(1<<42) + float64(i+1), Member: fmt.Sprint("gone", i)})
	}
	for left := gone; left > 0; left -= 100 {
		if n := rdb.ZCard(ctx, groupOf("a")).Val(); n != int64(left) {
			t.Fatalf("%d records are listed, want %d", n, left)
		}
		if records, err := locks.GroupRecords(ctx, "{a}"); err != nil || len(records) != 0 {
			t.Fatalf("%+v, %v", records, err)
		}
		once := locks.Once("{a}", core.WithQuota(1))
		if err := coretest.MustBegin(t, once).Release(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if n := rdb.Exists(ctx, groupOf("a")).Val(); n != 0 {
		t.Error("an empty group is left")
	}
}
