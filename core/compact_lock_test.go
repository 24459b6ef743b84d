package core_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestCompactLock: a lock has three fields until another client asks for it, and says the same of its holder before and
// after that.
func TestCompactLock(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := newClient(t, rdb, core.WithTTL(long))
	for kind, lock := range strategies(locks) {
		lease := mustLock(t, lock(kind))
		if fields := rdb.HGetAll(ctx, "lock:"+kind).Val(); len(fields) != 3 {
			t.Errorf("%s: fields %v, want 3", kind, fields)
		}
		before := mustInspect(t, locks, kind)
		expand(t, locks, kind)
		if n := rdb.HLen(ctx, "lock:"+kind).Val(); n <= 3 {
			t.Errorf("%s: %d fields after another client has asked", kind, n)
		}
		after := mustInspect(t, locks, kind)
		if len(before.Holders) != 1 || before.Holders[0].Owner != lease.Owner() || before.Holders[0].Token != lease.Token() {
			t.Errorf("%s: %+v, want the holder %s with token %d", kind, before, lease.Owner(), lease.Token())
		}
		if b, a := withoutTTL(before), withoutTTL(after); b != a {
			t.Errorf("%s: %s, and after another client has asked %s", kind, b, a)
		}
		if left := after.Holders[0].TTL; left > long || left < long-within {
			t.Errorf("%s: %v left of %v", kind, left, long)
		}
		if err := lease.Extend(ctx, long); err != nil {
			t.Errorf("%s: extend: %v", kind, err)
		}
		unlock(t, lease)
	}
	awaitTidy(t, rdb)
}

// TestCompactLockExtended: Extend beyond the TTL counts as the longest TTL from then on, so that it is not cut as after a
// step of the server's clock.
func TestCompactLockExtended(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := newClient(t, rdb, core.WithTTL(within))
	for kind, lock := range strategies(locks) {
		lease := mustLock(t, lock(kind))
		if err := lease.Extend(context.Background(), long); err != nil {
			t.Fatalf("%s: extend: %v", kind, err)
		}
		expand(t, locks, kind)
		if left := mustInspect(t, locks, kind).TTL; left > long || left < long-within {
			t.Errorf("%s: %v left after Extend(%v)", kind, left, long)
		}
		unlock(t, lease)
	}
	awaitTidy(t, rdb)
}

// TestCompactShareIsRenewedBesideOthers: the first reader's lease is renewed after another reader has joined, which needs one
// more key.
func TestCompactShareIsRenewedBesideOthers(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client(), core.WithTTL(5*time.Second))
	first := mustLock(t, locks.Read("name"))
	second := mustLock(t, locks.Read("name"))
	awaitRenewal(t, first)
	awaitRenewal(t, first)
	awaitRenewal(t, second)
	for _, lease := range []*core.Lease{first, second} {
		if err := lease.Context().Err(); err != nil {
			t.Errorf("lost: %v", context.Cause(lease.Context()))
		}
		unlock(t, lease)
	}
}

// TestTokensAfterALossyFailover: a replica that has become the master has lost the latest grants, and their tokens. What it
// grants has greater ones.
func TestTokensAfterALossyFailover(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := newClient(t, rdb)
	const key = "holdfast:token"
	unlock(t, mustLock(t, locks.Mutex("name")))
	last, left := rdb.Get(ctx, key).Val(), rdb.PTTL(ctx, key).Val()
	replicated := redisTime(t, rdb)
	var lost int64
	for range 5 {
		lease := mustLock(t, locks.Mutex("name"))
		lost = lease.Token()
		unlock(t, lease)
	}
	testkit.Eventually(t, within, "the time that a failover takes at least", func() bool {
		return redisTime(t, rdb).Sub(replicated) > 20*time.Millisecond
	})
	rdb.Set(ctx, key, last, left-redisTime(t, rdb).Sub(replicated))
	lease := mustLock(t, locks.Mutex("name"))
	if lease.Token() <= lost {
		t.Errorf("token %d after %d", lease.Token(), lost)
	}
	unlock(t, lease)
}

func mustInspect(t testing.TB, locks *core.Client, name string) core.Info {
	t.Helper()
	info, err := locks.Inspect(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	return info
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
