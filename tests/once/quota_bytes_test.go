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

// TestQuotaAgainstEverNewKeys plays a client that chooses ever new keys, whose runs fail, complete, or lose their lease
// and are followed by some that fail. However many there are, Redis keeps no more than the quota says.
func TestQuotaAgainstEverNewKeys(t *testing.T) {
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

// TestQuotaBytes: whatever values a client brings about, they take no more memory than it may fill, also while many of its
// runs go on.
func TestQuotaBytes(t *testing.T) {
	t.Parallel()
	const bound, largest = 512 << 10, 32 << 10
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	of := func(key any) *core.Once {
		return locks.Once(fmt.Sprint("{ada}:", key), core.WithQuotaBytes(bound), core.WithMaxValue(largest),
			core.WithFingerprint(make([]byte, 32)), core.WithRetention(time.Hour))
	}
	var refused sync.Map
	besiege(400, func(i int) {
		a, err := of(i).Begin(ctx)
		if err == nil {
			err = a.Complete(ctx, make([]byte, i*997%largest))
		}
		if refused.Store(i, err); err != nil && !errors.Is(err, core.ErrTooManyKeys) {
			t.Error(err)
		}
	})
	_, taken := lasting(t, rdb)
	if taken > bound || taken < bound/2 {
		t.Errorf("%d bytes are taken of %d", taken, bound)
	}
	_, err := of("more").Begin(ctx)
	var full *core.TooManyKeysError
	if !errors.As(err, &full) || !full.Bytes || full.RetryAfter <= time.Hour-coretest.Within || full.RetryAfter > time.Hour {
		t.Errorf("error %v", err)
	}
	// The records that are there are no new ones, and what is forgotten makes room.
	for i := range 400 {
		if err, _ := refused.Load(i); err == nil {
			_, err := of(i).Begin(ctx)
			coretest.WantErr(t, err, core.ErrCompleted)
			coretest.Forget(t, locks.Once(fmt.Sprint("{ada}:", i)))
		}
	}
	coretest.MustBegin(t, of("more"))
	if err := coretest.MustBegin(t, of("last")).Release(ctx); err != nil {
		t.Error(err)
	}
	if n := rdb.ZCard(ctx, groupOf("ada")).Val(); n != 1 {
		t.Errorf("%d records count, one is running", n)
	}
}

// TestQuotaBytesOfRunning: a run in progress counts with the largest value that it may have, until it ends.
func TestQuotaBytesOfRunning(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(coretest.Long))
	of := func(i int) *core.Once {
		return locks.Once(fmt.Sprintf("{a}:%d", i), core.WithQuotaBytes(100_000), core.WithMaxValue(30_000))
	}
	first := coretest.MustBegin(t, of(1)) // each counts 32 KiB
	coretest.MustBegin(t, of(2))
	coretest.MustBegin(t, of(3))
	_, err := of(4).Begin(ctx)
	coretest.WantErr(t, err, core.ErrTooManyKeys)
	if err := first.Complete(ctx, []byte("small")); err != nil {
		t.Fatal(err)
	}
	_, err = of(4).Begin(ctx) // the small one has left something
	coretest.WantErr(t, err, core.ErrTooManyKeys)
	coretest.Forget(t, of(1))
	coretest.MustBegin(t, of(4))
	for _, opts := range [][]core.OnceOption{
		{core.WithQuotaBytes(-1)},
		{core.WithQuotaBytes(32_000), core.WithMaxValue(31_000)},
		{core.WithQuotaBytes(1 << 20)}, // the default may have more
	} {
		_, err := locks.Once("{a}", opts...).Begin(ctx)
		coretest.WantErr(t, err, core.ErrInvalidOption)
	}
	_, err = locks.Once("no braces", core.WithQuotaBytes(1<<30)).Begin(ctx)
	coretest.WantErr(t, err, core.ErrInvalidOption)
}

// TestGroupTakesOutWhatHasExpired: expired records leave both counts, whatever their size, some with each attempt.
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
		once := locks.Once("{a}", core.WithQuota(1), core.WithQuotaBytes(2<<20))
		if err := coretest.MustBegin(t, once).Release(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if n := rdb.Exists(ctx, groupOf("a")).Val(); n != 0 {
		t.Error("an empty group is left")
	}
}
