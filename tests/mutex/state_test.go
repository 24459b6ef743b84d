package mutex_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
	"github.com/holdfast-go/holdfast/tests/testkit/luasource"
)

// The tests in this file look at what is in Redis.

// TestKeysOfALock: everything about a lock has the same hash tag, hence slot, in a Cluster.
func TestKeysOfALock(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, tag := range map[string]string{"plain": "lock:plain", "{tag}:x": "tag", "a{tag}b{c}": "tag"} {
		rdb := testkit.Start(t).Client()
		locks := coretest.NewClient(t, rdb, core.WithInstance(""))
		coretest.Unlock(t, coretest.MustLock(t, locks.Mutex(name)))
		coretest.MustLock(t, locks.Mutex(name))
		keys := rdb.Keys(ctx, "*").Val()
		if len(keys) != 2 {
			t.Errorf("%q: keys %q, want the lock and the token", name, keys)
		}
		for _, key := range keys {
			if got := coretest.HashTag(key); got != tag && key != "holdfast:token" {
				t.Errorf("%q: key %q hashes by %q, not %q", name, key, got, tag)
			}
		}
	}
}

// TestRepeatedReleaseReturnsTheFirstResult: a repetition has the reply of the first run.
func TestRepeatedReleaseReturnsTheFirstResult(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	relay := server.Relay()
	locks := coretest.NewClient(t, relay.Client(), core.WithTTL(coretest.Long))
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("warm")))

	forced := coretest.MustLock(t, locks.Mutex("forced"))
	if ok, err := coretest.NewClient(t, server.Client()).ForceUnlock(ctx, "forced"); !ok || err != nil {
		t.Fatalf("ForceUnlock = %v, %v", ok, err)
	}
	relay.LoseReplies("lock:forced", 1, testkit.Closed)
	coretest.WantErr(t, forced.Unlock(ctx), core.ErrNotHeld)

	kept := coretest.MustLock(t, locks.Mutex("kept"), core.WithMinHold(coretest.Long))
	relay.LoseReplies("lock:kept", 1, testkit.Closed)
	coretest.Unlock(t, kept)
	if n := relay.LostReplies(); n != 2 {
		t.Errorf("%d replies lost, want 2", n)
	}
}

// TestReleaseTakesTheHoldFirst: a release that dies halfway leaves the count too high, not too low.
func TestReleaseTakesTheHoldFirst(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb := server.Client()
	locks := coretest.NewClient(t, coretest.Restricted(t, server, "+@all", "-hdel"), core.WithTTL(coretest.Long))
	outer := coretest.MustLock(t, locks.Mutex("name"))
	inner := coretest.MustLockWith(t, outer.Context(), locks.Mutex("name"))
	if inner.Unlock(ctx) == nil {
		t.Error("released without HDEL")
	}
	if count := rdb.HGet(ctx, "lock:name", outer.Owner()).Val(); count != "2" {
		t.Errorf("hold count %s after half a release, want 2", count)
	}
}

// TestAcquireBetweenTwoReleases: a mutex is given up while another strategy has the lock, which takes two scripts. The
// lock becomes free and the acquire arrives between them.
func TestAcquireBetweenTwoReleases(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	held := coretest.MustLock(t, coretest.NewClient(t, rdb).Fair("name"))
	released := "holdfast:released:{lock:name}:late:1"
	status, err := coretest.LuaScript(t, luasource.Release...).Run(ctx, rdb,
		[]string{"lock:name", released, "holdfast:waiting_clients:{lock:name}"}, "late:1", "PUBLISH", "", 60_000, 1).Int()
	if err != nil || status != 4 {
		t.Fatalf("release: %v, %v", status, err)
	}
	coretest.Unlock(t, held)
	reply, err := coretest.LuaScript(t, luasource.Acquire...).Run(ctx, rdb,
		[]string{"lock:name", "holdfast:token", released}, "late:1", 60_000).Slice()
	if err != nil || len(reply) != 2 || reply[0] != int64(-1) {
		t.Errorf("acquire: %v, %v", reply, err)
	}
}

// TestRepeatedAcquireRenews: a client that repeats a request counts from the repetition, so Redis must too.
func TestRepeatedAcquireRenews(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb, relay := server.Client(), server.Relay()
	locks := coretest.NewClient(t, relay.Client(), core.WithTTL(coretest.Long))
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("warm")))
	relay.LoseReplies("lock:name", 1, testkit.Closed)
	coretest.BeforeRepetition(relay, "lock:name", func() { rdb.PExpire(ctx, "lock:name", coretest.Long/2) }) // so late it comes
	lease := coretest.MustLock(t, locks.Mutex("name"))
	if relay.LostReplies() != 1 {
		t.Error("no reply was lost")
	}
	if left := rdb.PTTL(ctx, "lock:name").Val(); left < coretest.Long-coretest.Within {
		t.Errorf("Redis keeps the lease for %v, the holder believes in %v", left, time.Until(lease.ValidUntil()))
	}
	coretest.Unlock(t, lease)
}
