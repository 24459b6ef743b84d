package core_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// shareEnds returns when the share of an owner ends, by Redis's clock.
func shareEnds(t testing.TB, rdb *redis.Client, owner string) time.Time {
	t.Helper()
	ms, err := rdb.ZScore(context.Background(), "holdfast:share_expiries:{lock:name}", owner).Result()
	if err != nil {
		t.Fatalf("share of %s: %v", owner, err)
	}
	return time.UnixMilli(int64(ms))
}

// awaitRenewal returns after the next renewal of a lease.
func awaitRenewal(t testing.TB, lease *core.Lease) {
	t.Helper()
	before := lease.ValidUntil()
	testkit.Eventually(t, within, "a renewal", func() bool {
		return lease.ValidUntil().Sub(before) > 100*time.Millisecond
	})
}

// TestKilledReader kills one of two processes that read. A writer enters as soon as the other one has unlocked and
// the dead one's own time is over, whichever comes last; the other one's renewals do not prolong it.
func TestKilledReader(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		dead, living time.Duration // TTLs
		unlockLast   bool
	}{
		"dead one ends last": {dead: 5 * time.Second, living: 2 * time.Second},
		"living one unlocks": {dead: 2 * time.Second, living: 4 * time.Second, unlockLast: true},
		"same TTL":           {dead: 3 * time.Second, living: 3 * time.Second, unlockLast: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testkit.Start(t)
			rdb := server.Client()
			dying := startStaying(t, server, "Read", 1, test.dead)
			dead := dying.entered(t)
			locks := newClient(t, rdb)
			living := mustLock(t, locks.Read("name"), core.WithTTL(test.living))
			writer := leaseLater(t, locks.Write("name"))
			awaitQueue(t, locks, "name", 1)
			dying.kill(t)
			due := shareEnds(t, rdb, dead.Owner)
			awaitRenewal(t, living)
			if test.unlockLast {
				testkit.Eventually(t, within, "the dead one's time to be over, and the living one renewed", func() bool {
					return redisTime(t, rdb).After(due.Add(test.living))
				})
				due = redisTime(t, rdb)
			}
			unlock(t, living)
			lease := awaitLease(t, writer)
			late := grantedAt(lease).Sub(due)
			t.Logf("entered %v after it could", late)
			if late < 0 || late > within/4 {
				t.Errorf("entered %v after it could", late)
			}
			unlock(t, lease)
			awaitTidy(t, rdb)
		})
	}
}

// TestSharesKeepTheirOwnTime: whatever happens to one share, a renewal, an extension, its end, the times of the others
// stay as they are.
func TestSharesKeepTheirOwnTime(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := newClient(t, rdb)
	lock := locks.Read("name")
	short := mustLock(t, lock, core.WithFixedTTL(within))
	longer := mustLock(t, lock, core.WithFixedTTL(long))
	ends := map[*core.Lease]time.Time{}
	for _, l := range []*core.Lease{short, longer} {
		ends[l] = shareEnds(t, rdb, l.Owner())
	}
	unmoved := func(after string) {
		t.Helper()
		info, err := locks.Inspect(ctx, "name")
		if err != nil {
			t.Fatal(err)
		}
		for l, end := range ends {
			if now := shareEnds(t, rdb, l.Owner()); !now.Equal(end) {
				t.Errorf("after %s, a share of %v ends %v later", after, time.Until(end), now.Sub(end))
			}
			for _, h := range info.Holders {
				if left := end.Sub(redisTime(t, rdb)); h.Owner == l.Owner() && (h.TTL < left || h.TTL > left+within/2) {
					t.Errorf("after %s, Inspect says %v is left, not %v", after, h.TTL, left)
				}
			}
		}
	}
	renewed := mustLock(t, lock, core.WithTTL(2*time.Second))
	unmoved("the entry of another")
	for range 2 {
		awaitRenewal(t, renewed)
		unmoved("a renewal of another")
	}
	if err := renewed.Extend(ctx, 2*long); err != nil {
		t.Fatal(err)
	}
	unmoved("an extension of another")
	again := mustLockWith(t, renewed.Context(), lock, core.WithTTL(3*long))
	unmoved("a second entry of another")
	unlock(t, again)
	unlock(t, renewed)
	unmoved("the end of another")
	if left := rdb.PTTL(ctx, "lock:name").Val(); left < long-within || left > long {
		t.Errorf("the lock lasts %v, not as long as its last share", left)
	}
	unlock(t, longer)
	if left := rdb.PTTL(ctx, "lock:name").Val(); left > within {
		t.Errorf("the lock lasts %v, longer than its last share", left)
	}
	unlock(t, short)
	awaitTidy(t, rdb)
}

// TestDeadShareUnderAWriter: a writer's own share ends without being unlocked. However long the writer goes on, its
// renewals keep what is needed to find that out.
func TestDeadShareUnderAWriter(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb, relay := server.Client(), server.Relay()
	writer := mustLock(t, newClient(t, rdb).Write("name"), core.WithTTL(4*time.Second))
	share := mustLock(t, newClient(t, relay.Client()).Read("name"), core.WithOwner(writer.Owner()),
		core.WithFixedTTL(time.Second))
	relay.Drop(testkit.Both)
	waitFor(t, share.Done(), "the share to end")
	awaitRenewed(t, []*core.Lease{writer}, 8*time.Second) // longer than the share's key was given at first
	if writer.Context().Err() != nil {
		t.Fatal("the writer's lease was lost")
	}
	if _, err := newClient(t, rdb).Fair("name").TryLock(ctx); err == nil {
		t.Error("locked")
	}
	for field := range rdb.HGetAll(ctx, "lock:name").Val() {
		if strings.HasPrefix(field, "share:") || strings.HasPrefix(field, "read:") {
			t.Errorf("%s was left", field)
		}
	}
	unlock(t, writer)
	relay.Heal()
}
