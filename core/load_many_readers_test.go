package core_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

const (
	sharesOfName = "holdfast:share_expiries:{lock:name}"
	manyShares   = 40_000
	sweep        = 100 // of them in one run, see internal/lockscript/lua/queue_common.lua
)

// shareOut gives the lock, which is shared by one holder, to many others that have crashed. Their shares end, or have
// ended, at that time.
func shareOut(t *testing.T, rdb *redis.Client, n int, ends time.Time) {
	t.Helper()
	ctx := context.Background()
	for done := 0; done < n; {
		if _, err := rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for range 1000 {
				owner, id := fmt.Sprintf("crashed:%d", done), fmt.Sprintf("share-of-crashed:%d", done)
				pipe.HSet(ctx, "lock:name", "share:"+id, "0 "+owner, "read:"+owner, "1 7 7")
				pipe.ZAdd(ctx, sharesOfName, redis.Z{Score: float64(ends.UnixMilli()), Member: id})
				done++
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestManyExpiredReaders: whatever script finds them, it takes out a bounded number of the shares that have expired. The
// others count for nothing, and go with the lock.
func TestManyExpiredReaders(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb := server.Client()
	locks := newClient(t, server.Client())
	alive := mustLock(t, locks.Read("name"), core.WithTTL(long))
	expand(t, locks, "name")
	shareOut(t, rdb, manyShares, time.Now().Add(-time.Minute))
	left := rdb.ZCard(ctx, sharesOfName).Val()
	swept := func(what string, runs int64) {
		t.Helper()
		now := rdb.ZCard(ctx, sharesOfName).Val()
		if now < left-sweep*runs-1 || now >= left {
			t.Errorf("%s: %d shares are left of %d", what, now, left)
		}
		left = now
	}
	_, err := locks.Write("name").TryLock(ctx)
	wantErr(t, err, core.ErrNotAcquired)
	swept("a refused write", 1)
	_, err = locks.Write("name").TryLock(ctx, core.WithOwner(fmt.Sprintf("crashed:%d", manyShares-1)))
	wantErr(t, err, core.ErrNotAcquired) // which would be ErrUpgrade if it had a share still
	swept("a refused write of a crashed reader", 1)
	reader := mustLock(t, locks.Read("name"), core.WithTTL(long))
	left++
	swept("a read", 1)
	unlock(t, reader)
	swept("a release", 1)
	info, err := locks.Inspect(ctx, "name")
	if err != nil || info.Shares != 1 || len(info.Holders) != 1 || info.Holders[0].Owner != alive.Owner() {
		t.Errorf("Inspect: %+v, %v", info, err)
	}
	unlock(t, alive)
	if n := rdb.Exists(ctx, "lock:name", sharesOfName).Val(); n != 0 {
		t.Errorf("%d keys are left when nobody reads any more", n)
	}
	unlock(t, mustLock(t, locks.Write("name")))
}

// TestManyReadersOfAClockSetBack: shares that last longer than any owner has requested are cut a bounded number at a time, and
// the lock's key at once.
func TestManyReadersOfAClockSetBack(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb := server.Client()
	locks := newClient(t, server.Client())
	const ttl = time.Minute
	mustLock(t, locks.Read("name"), core.WithTTL(ttl))
	expand(t, locks, "name")
	shareOut(t, rdb, 1000, time.Now().Add(time.Hour))
	rdb.PExpire(ctx, "lock:name", time.Hour)
	rdb.PExpire(ctx, sharesOfName, time.Hour)
	late := func() int64 {
		return rdb.ZCount(ctx, sharesOfName, fmt.Sprint(time.Now().Add(2*ttl).UnixMilli()), "+inf").Val()
	}
	for want := int64(1000 - sweep); want >= 0; want -= sweep {
		_, err := locks.Write("name").TryLock(ctx)
		wantErr(t, err, core.ErrNotAcquired)
		if got := late(); got != want {
			t.Errorf("%d shares last too long, want %d", got, want)
		}
		if left := rdb.PTTL(ctx, "lock:name").Val(); left > ttl {
			t.Errorf("the lock is held for %v", left)
		}
	}
}
