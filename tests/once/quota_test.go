package once_test

import (
	"context"
	"errors"
	"fmt"
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
