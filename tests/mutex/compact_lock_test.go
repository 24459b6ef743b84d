package mutex_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestCompactLock: a lock has two fields until another client asks for it, and says the same of its holder before and
// after that.
func TestCompactLock(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	for kind, lock := range coretest.Strategies(locks) {
		lease := coretest.MustLock(t, lock(kind))
		if fields := rdb.HGetAll(ctx, "lock:"+kind).Val(); len(fields) != 2 {
			t.Errorf("%s: fields %v, want 2", kind, fields)
		}
		before := coretest.MustInspect(t, locks, kind)
		coretest.Expand(t, locks, kind)
		if n := rdb.HLen(ctx, "lock:"+kind).Val(); n <= 2 {
			t.Errorf("%s: %d fields after another client has asked", kind, n)
		}
		after := coretest.MustInspect(t, locks, kind)
		if len(before.Holders) != 1 || before.Holders[0].Owner != lease.Owner() || before.Holders[0].Token != lease.Token() {
			t.Errorf("%s: %+v, want the holder %s with token %d", kind, before, lease.Owner(), lease.Token())
		}
		if b, a := withoutTTL(before), withoutTTL(after); b != a {
			t.Errorf("%s: %s, and after another client has asked %s", kind, b, a)
		}
		if left := after.Holders[0].TTL; left > coretest.Long || left < coretest.Long-coretest.Within {
			t.Errorf("%s: %v left of %v", kind, left, coretest.Long)
		}
		if err := lease.Extend(ctx, coretest.Long); err != nil {
			t.Errorf("%s: extend: %v", kind, err)
		}
		coretest.Unlock(t, lease)
	}
	coretest.AwaitTidy(t, rdb)
}

// TestCompactLockExtended: Extend beyond the TTL counts as the longest TTL from then on, so that it is not cut as after a
// step of the server's clock.
func TestCompactLockExtended(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Within))
	for kind, lock := range coretest.Strategies(locks) {
		lease := coretest.MustLock(t, lock(kind))
		if err := lease.Extend(context.Background(), coretest.Long); err != nil {
			t.Fatalf("%s: extend: %v", kind, err)
		}
		coretest.Expand(t, locks, kind)
		if left := coretest.MustInspect(t, locks, kind).TTL; left > coretest.Long || left < coretest.Long-coretest.Within {
			t.Errorf("%s: %v left after Extend(%v)", kind, left, coretest.Long)
		}
		coretest.Unlock(t, lease)
	}
	coretest.AwaitTidy(t, rdb)
}

// TestCompactShareIsRenewedBesideOthers: the first reader's lease is renewed after another reader has joined, which needs one
// more key.
func TestCompactShareIsRenewedBesideOthers(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithTTL(5*time.Second))
	first := coretest.MustLock(t, locks.Read("name"))
	second := coretest.MustLock(t, locks.Read("name"))
	coretest.AwaitRenewal(t, first)
	coretest.AwaitRenewal(t, first)
	coretest.AwaitRenewal(t, second)
	for _, lease := range []*core.Lease{first, second} {
		if err := lease.Context().Err(); err != nil {
			t.Errorf("lost: %v", context.Cause(lease.Context()))
		}
		coretest.Unlock(t, lease)
	}
}

// TestTokensAfterALossyFailover: a replica that has become the master has lost the latest grants, and their tokens. What it
// grants has greater ones.
func TestTokensAfterALossyFailover(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb)
	const key = "holdfast:token"
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("name")))
	last, left := rdb.Get(ctx, key).Val(), rdb.PTTL(ctx, key).Val()
	replicated := coretest.RedisTime(t, rdb)
	var lost int64
	for range 5 {
		lease := coretest.MustLock(t, locks.Mutex("name"))
		lost = lease.Token()
		coretest.Unlock(t, lease)
	}
	testkit.Eventually(t, coretest.Within, "the time that a failover takes at least", func() bool {
		return coretest.RedisTime(t, rdb).Sub(replicated) > 20*time.Millisecond
	})
	rdb.Set(ctx, key, last, left-coretest.RedisTime(t, rdb).Sub(replicated))
	lease := coretest.MustLock(t, locks.Mutex("name"))
	if lease.Token() <= lost {
		t.Errorf("token %d after %d", lease.Token(), lost)
	}
	coretest.Unlock(t, lease)
}

// withoutTTL returns the text of a state without what changes with time.
func withoutTTL(info core.Info) string {
	info.TTL = 0
	info.Holders = slices.Clone(info.Holders)
	for i := range info.Holders {
		info.Holders[i].TTL = 0
	}
	return fmt.Sprintf("%+v", info)
}
