package rights_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestForgedExpiredPermits: another program adds expired shares of many owners, each with the most permits and a
// minimum hold time. One call ends the permits of a few owners, and later calls end the others, so that no script
// writes for each permit of all.
func TestForgedExpiredPermits(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	const owners, permits = 50, 1000
	first := coretest.MustLock(t, locks.Semaphore("name", 5))
	again := coretest.MustLock(t, locks.Semaphore("name", 5)) // so the lock has all its fields
	expiries, slots := "holdfast:share_expiries:{lock:name}", "holdfast:slots:{lock:name}"
	forge := func(minHold bool) {
		for i := range owners {
			owner, id := fmt.Sprint("o", i), fmt.Sprint("c:", i)
			rdb.HSet(ctx, "lock:name", "share:"+id, "0 "+owner, "read:"+owner, "1 5 5", "permits:"+owner, fmt.Sprint("1 ", permits))
			rdb.ZAdd(ctx, expiries, redis.Z{Score: 1, Member: id})
			if minHold {
				rdb.ZAdd(ctx, expiries, redis.Z{Score: float64(time.Now().Add(coretest.Long).UnixMilli()), Member: "min_hold:" + owner})
			}
			for p := range 3 { // more would only take the test longer
				rdb.ZAdd(ctx, slots, redis.Z{Score: float64(100 + 3*i + p), Member: fmt.Sprint(p+1, ":", owner)})
			}
		}
	}
	forge(true)
	before := rdb.ZCard(ctx, expiries).Val()
	_, _ = locks.Semaphore("name", 5).TryLock(ctx)
	if added := rdb.ZCard(ctx, expiries).Val() - before; added > 2*permits {
		t.Errorf("one call has added %d members", added)
	}
	for range owners {
		_, _ = locks.Semaphore("name", 5).TryLock(ctx)
	}
	if left := rdb.HExists(ctx, "lock:name", fmt.Sprint("read:o", owners-1)).Val(); left {
		t.Error("later calls have not removed the shares of the last owner")
	}
	forge(false)
	rdb.ZRemRangeByScore(ctx, expiries, "1", "1")
	for i := range owners {
		rdb.ZAdd(ctx, expiries, redis.Z{Score: float64(time.Now().Add(time.Minute).UnixMilli()), Member: fmt.Sprint("c:", i)})
	}
	if forced, err := locks.ForceUnlockHolder(ctx, "name", core.Holder{Owner: fmt.Sprint("o", owners-1)}); err != nil || !forced {
		t.Errorf("forced %v, %v", forced, err)
	}
	if forced, err := locks.ForceUnlockHolder(ctx, "name", core.Holder{Token: 5}); err != nil || !forced {
		t.Errorf("forced %v, %v", forced, err)
	}
	if left := rdb.HExists(ctx, "lock:name", "read:o0").Val(); left {
		t.Error("a holder was not removed by its token")
	}
	_, _ = first.Unlock(ctx), again.Unlock(ctx)
}
