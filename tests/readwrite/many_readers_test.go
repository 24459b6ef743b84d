package readwrite_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestManyExpiredReaders: whatever script finds them, it takes out a bounded number of the shares that have expired. The
// others count for nothing, and go with the lock.
func TestManyExpiredReaders(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb := server.Client()
	locks := coretest.NewClient(t, server.Client())
	alive := coretest.MustLock(t, locks.Read("name"), core.WithTTL(coretest.Long))
	coretest.Expand(t, locks, "name")
	coretest.ShareOut(t, rdb, coretest.ManyShares, time.Now().Add(-time.Minute))
	left := rdb.ZCard(ctx, coretest.SharesOfName).Val()
	swept := func(what string, runs int64) {
		t.Helper()
		now := rdb.ZCard(ctx, coretest.SharesOfName).Val()
		if now < left-coretest.Sweep*runs-1 || now >= left {
			t.Errorf("%s: %d shares are left of %d", what, now, left)
		}
		left = now
	}
	_, err := locks.Write("name").TryLock(ctx)
	coretest.WantErr(t, err, core.ErrNotAcquired)
	swept("a refused write", 1)
	_, err = locks.Write("name").TryLock(ctx, core.WithOwner(fmt.Sprintf("crashed:%d", coretest.ManyShares-1)))
	coretest.WantErr(t, err, core.ErrNotAcquired) // which would be ErrUpgrade if it had a share still
	swept("a refused write of a crashed reader", 1)
	reader := coretest.MustLock(t, locks.Read("name"), core.WithTTL(coretest.Long))
	left++
	swept("a read", 1)
	coretest.Unlock(t, reader)
	swept("a release", 1)
	info, err := locks.Inspect(ctx, "name")
	if err != nil || info.Shares != 1 || len(info.Holders) != 1 || info.Holders[0].Owner != alive.Owner() {
		t.Errorf("Inspect: %+v, %v", info, err)
	}
	coretest.Unlock(t, alive)
	if n := rdb.Exists(ctx, "lock:name", coretest.SharesOfName).Val(); n != 0 {
		t.Errorf("%d keys are left when nobody reads any more", n)
	}
	coretest.Unlock(t, coretest.MustLock(t, locks.Write("name")))
}

// TestManyReadersOfAClockSetBack: shares that last longer than any owner has requested are cut a bounded number at a time, and
// the lock's key at once.
func TestManyReadersOfAClockSetBack(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb := server.Client()
	locks := coretest.NewClient(t, server.Client())
	const ttl = time.Minute
	coretest.MustLock(t, locks.Read("name"), core.WithTTL(ttl))
	coretest.Expand(t, locks, "name")
	coretest.ShareOut(t, rdb, 1000, time.Now().Add(time.Hour))
	rdb.PExpire(ctx, "lock:name", time.Hour)
	rdb.PExpire(ctx, coretest.SharesOfName, time.Hour)
	late := func() int64 {
		return rdb.ZCount(ctx, coretest.SharesOfName, fmt.Sprint(time.Now().Add(2*ttl).UnixMilli()), "+inf").Val()
	}
	for want := int64(1000 - coretest.Sweep); want >= 0; want -= coretest.Sweep {
		_, err := locks.Write("name").TryLock(ctx)
		coretest.WantErr(t, err, core.ErrNotAcquired)
		if got := late(); got != want {
			t.Errorf("%d shares last too long, want %d", got, want)
		}
		if left := rdb.PTTL(ctx, "lock:name").Val(); left > ttl {
			t.Errorf("the lock is held for %v", left)
		}
	}
}
