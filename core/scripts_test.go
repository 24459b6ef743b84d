package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// TestRepeatedReleaseTellsTheTruth: the answer to a repetition is that of the first run.
func TestRepeatedReleaseTellsTheTruth(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	relay := server.Relay()
	locks := newClient(t, relay.Client(), core.WithTTL(long))
	unlock(t, mustLock(t, locks.Mutex("warm")))

	forced := mustLock(t, locks.Mutex("forced"))
	if ok, err := newClient(t, server.Client()).ForceUnlock(ctx, "forced"); !ok || err != nil {
		t.Fatalf("ForceUnlock = %v, %v", ok, err)
	}
	relay.LoseReplies("lock:forced", 1, redistest.Closed)
	wantErr(t, forced.Unlock(ctx), core.ErrNotHeld)

	kept := mustLock(t, locks.Mutex("kept"), core.WithMinHold(long))
	relay.LoseReplies("lock:kept", 1, redistest.Closed)
	unlock(t, kept)
	if n := relay.LostReplies(); n != 2 {
		t.Errorf("%d replies lost, want 2", n)
	}
}

// TestMinHold: the least time bounds the TTL from below, survives re-entry in both directions, and leaves no
// owner behind.
func TestMinHold(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := redistest.Start(t).Client()
	locks := newClient(t, rdb, core.WithTTL(time.Second))
	for name, keep := range map[string][2]time.Duration{
		"alone": {long}, "longer outside": {long, 10 * time.Millisecond}, "longer inside": {0, long},
	} {
		outer := mustLock(t, locks.Mutex(name), core.WithMinHold(keep[0]))
		if keep[0] == long {
			if left := leftFor(t, rdb, name); left < long-within {
				t.Errorf("%s: a crash would free it after %v", name, left)
			}
		}
		if keep[1] != 0 {
			unlock(t, mustLockWith(t, outer.Context(), locks.Mutex(name), core.WithMinHold(keep[1])))
		}
		unlock(t, outer)
		if left := leftFor(t, rdb, name); left < long-within || left > long {
			t.Errorf("%s: %v left after unlock, want %v from the grant", name, left, long)
		}
		if info, err := locks.Inspect(ctx, name); err != nil || len(info.Holders) != 0 || info.Mode != core.ModeMutex {
			t.Errorf("%s: after unlock %+v, %v", name, info, err)
		}
	}
	unlock(t, mustLock(t, locks.Mutex("shorter"), core.WithTTL(long), core.WithMinHold(10*time.Second)))
	if left := leftFor(t, rdb, "shorter"); left > 10*time.Second {
		t.Errorf("%v left after unlock, though only 10s were asked for", left)
	}
	// As a server's clock that was an hour ahead at the grant would have left it.
	ahead := mustLock(t, locks.Mutex("ahead"), core.WithMinHold(time.Second))
	rdb.HSet(ctx, "lock:ahead", "min_hold_until", time.Now().Add(time.Hour).UnixMicro())
	unlock(t, ahead)
	if left := rdb.PTTL(ctx, "lock:ahead").Val(); left > time.Second {
		t.Errorf("taken for %v after the clock was set back", left)
	}
}

// TestReleaseTakesTheHoldFirst: a release that dies halfway leaves the count too high, not too low.
func TestReleaseTakesTheHoldFirst(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	rdb := server.Client()
	locks := newClient(t, restricted(t, server, "+@all", "-hdel"), core.WithTTL(long))
	outer := mustLock(t, locks.Mutex("name"))
	inner := mustLockWith(t, outer.Context(), locks.Mutex("name"))
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
	rdb := redistest.Start(t).Client()
	held := mustLock(t, newClient(t, rdb).Fair("name"))
	released := "holdfast:released:{lock:name}:late:1"
	status, err := luaScript(t, "publish", "wake_next", "release").Run(ctx, rdb,
		[]string{"lock:name", released, "holdfast:waiting_clients:{lock:name}"}, "late:1", "late:1", 60_000, 1, "PUBLISH").Int()
	if err != nil || status != 4 {
		t.Fatalf("release: %v, %v", status, err)
	}
	unlock(t, held)
	reply, err := luaScript(t, "acquire_fast", "mutex_common", "acquire").Run(ctx, rdb,
		[]string{"lock:name", "holdfast:token:{lock:name}", released}, "late:1", "late:1", 60_000, 60_000, 0).Slice()
	if err != nil || len(reply) != 2 || reply[0] != int64(-1) {
		t.Errorf("acquire: %v, %v", reply, err)
	}
}

// TestHalfAnAcquire is TestHalfAScript for a user whose compensating release cannot tidy up either.
func TestHalfAnAcquire(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	rdb := server.Client()
	for _, command := range []string{"set", "pexpire"} {
		t.Run(command, func(t *testing.T) {
			locks := newClient(t, restricted(t, server, "+@all", "-del", "-"+command), core.WithTTL(long))
			if _, err := locks.Mutex(command).TryLock(ctx); err == nil {
				t.Error("locked")
			}
			redistest.Eventually(t, within, "the lock to be gone", func() bool {
				return rdb.Exists(ctx, "lock:"+command).Val() == 0
			})
		})
	}
}

// TestRepeatedAcquireRenews: whoever repeats a request counts from the repetition, so Redis must too.
func TestRepeatedAcquireRenews(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	rdb, relay := server.Client(), server.Relay()
	locks := newClient(t, relay.Client(), core.WithTTL(long))
	unlock(t, mustLock(t, locks.Mutex("warm")))
	relay.LoseReplies("lock:name", 1, redistest.Closed)
	nth(relay, "lock:name", 2, func() { rdb.PExpire(ctx, "lock:name", long/2) }) // so late it comes
	lease := mustLock(t, locks.Mutex("name"))
	if relay.LostReplies() != 1 {
		t.Error("no reply was lost")
	}
	if left := rdb.PTTL(ctx, "lock:name").Val(); left < long-within {
		t.Errorf("Redis keeps the lease for %v, the holder believes in %v", left, time.Until(lease.ValidUntil()))
	}
	unlock(t, lease)
}

// TestEntryAndTTL: the shorter TTL, of whichever entry, cuts nothing, neither at once nor when a waiter looks.
func TestEntryAndTTL(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client()
	locks := newClient(t, rdb)
	for name, ttls := range map[string][2]time.Duration{
		"longer outside": {long, 10 * time.Second}, "longer inside": {10 * time.Second, long},
	} {
		outer := mustLock(t, locks.Mutex(name), core.WithFixedTTL(ttls[0]))
		mustLockWith(t, outer.Context(), locks.Mutex(name), core.WithFixedTTL(ttls[1]))
		for range 2 {
			if left := leftFor(t, rdb, name); left < long-within {
				t.Errorf("%s: %v left of %v", name, left, long)
			}
		}
	}
}

// TestCrashedHolderAfterClockStep: what TestClockSetBack checks, for a holder that has really gone.
func TestCrashedHolderAfterClockStep(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := redistest.Start(t).Client()
	rdb.HSet(ctx, "lock:name", "dead:1", 1, "hold:dead:1", 1, "mode", "mutex", "token", 1, "ttl", 60_000)
	rdb.PExpire(ctx, "lock:name", time.Hour)
	if left := leftFor(t, rdb, "name"); left > time.Minute {
		t.Errorf("the waiter is told to wait for %v", left)
	}
	if left := rdb.PTTL(ctx, "lock:name").Val(); left > time.Minute || left <= 0 {
		t.Errorf("blocked for %v", left)
	}

	lease := mustLock(t, newClient(t, rdb).Mutex("extended"), core.WithFixedTTL(10*time.Second))
	rdb.PExpire(ctx, "lock:extended", time.Hour)
	if err := lease.Extend(ctx, long); err != nil {
		t.Errorf("extend: %v", err)
	}
	if left := rdb.PTTL(ctx, "lock:extended").Val(); left > long || left < long-within {
		t.Errorf("%v left after Extend(%v)", left, long)
	}
}

// TestRenewalOfASuccessorsLock: a lease that was forced must not renew, nor live on, when another holds the lock.
func TestRenewalOfASuccessorsLock(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := redistest.Start(t).Client()
	locks, other := newClient(t, rdb), newClient(t, rdb)
	old := mustLock(t, locks.Mutex("name"), core.WithTTL(long))
	if forced, err := other.ForceUnlock(ctx, "name"); !forced || err != nil {
		t.Fatalf("ForceUnlock = %v, %v", forced, err)
	}
	next := mustLock(t, other.Mutex("name"), core.WithFixedTTL(long))
	wantErr(t, old.Extend(ctx, 2*long), core.ErrNotHeld)
	waitFor(t, old.Done(), "the former holder's lease to end")
	wantErr(t, context.Cause(old.Context()), core.ErrLeaseLost)
	if left := rdb.PTTL(ctx, "lock:name").Val(); left > long {
		t.Errorf("the successor's lock was prolonged to %v", left)
	}
	unlock(t, next)
}

// TestForceUnlockTwice: a repetition spares the lock's next holder and says what the first run did; the waiters
// are told by message.
func TestForceUnlockTwice(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	rdb, relay := server.Client(), server.Relay()
	admin, locks := newClient(t, relay.Client()), newClient(t, rdb, core.WithTTL(long))
	if _, err := admin.ForceUnlock(ctx, "warm"); err != nil {
		t.Fatal(err)
	}
	mustLock(t, locks.Mutex("name"))
	told := subscribe(t, rdb, "redisson_lock__channel:{lock:name}")
	relay.LoseReplies("lock:name", 1, redistest.Closed)
	var next *core.Lease
	nth(relay, "lock:name", 2, func() { next, _ = locks.Mutex("name").TryLock(ctx) })
	if forced, err := admin.ForceUnlock(ctx, "name"); !forced || err != nil {
		t.Errorf("ForceUnlock = %v, %v", forced, err)
	}
	if got := told(); got != "0" {
		t.Errorf("message %q, want 0", got)
	}
	if next == nil {
		t.Fatal("nobody took the lock between the two runs")
	}
	unlock(t, next)

	relay.LoseReplies("lock:free", 1, redistest.Closed)
	nth(relay, "lock:free", 2, func() { next, _ = locks.Mutex("free").TryLock(ctx) })
	if forced, err := admin.ForceUnlock(ctx, "free"); forced || err != nil {
		t.Errorf("ForceUnlock of a free lock = %v, %v", forced, err)
	}
	unlock(t, next)
}

// TestInspectWithoutPubSub: a user who may not ask for listeners still sees the lock.
func TestInspectWithoutPubSub(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	locks := newClient(t, restricted(t, server, "+@all", "-pubsub"))
	mustLock(t, locks.Mutex("name"))
	info, err := locks.Inspect(context.Background(), "name")
	if err != nil || info.Waiters != -1 || len(info.Holders) != 1 {
		t.Errorf("Inspect = %+v, %v", info, err)
	}
}

// TestAdoptedLeaseIsNotCut: entering a Redisson client's hold under its owner's name leaves it its time.
func TestAdoptedLeaseIsNotCut(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := redistest.Start(t).Client()
	locks := newClient(t, rdb)
	java := "8b0f7e2d-0000-4000-8000-000000000001:42"
	rdb.HSet(ctx, "lock:name", java, 1)
	rdb.PExpire(ctx, "lock:name", 10*time.Minute)
	lease := mustLock(t, locks.Mutex("name"), core.WithOwner(java), core.WithTTL(time.Second))
	if _, err := newClient(t, rdb).Mutex("name").TryLock(ctx); err == nil {
		t.Error("another owner got in")
	}
	unlock(t, lease)
	if left := rdb.PTTL(ctx, "lock:name").Val(); left < 9*time.Minute {
		t.Errorf("Redisson's lease was cut to %v", left)
	}
}
