package readwrite_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
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
			dying := coretest.StartStaying(t, server, "Read", 1, test.dead)
			dead := dying.Entered(t)
			locks := coretest.NewClient(t, rdb)
			living := coretest.MustLock(t, locks.Read("name"), core.WithTTL(test.living))
			writer := coretest.LeaseLater(t, locks.Write("name"))
			coretest.AwaitQueue(t, locks, "name", 1)
			dying.Kill(t)
			due := shareEnds(t, rdb, dead.Owner)
			coretest.AwaitRenewal(t, living)
			if test.unlockLast {
				testkit.Eventually(t, coretest.Within, "the dead one's time to be over, and the living one renewed", func() bool {
					return coretest.RedisTime(t, rdb).After(due.Add(test.living))
				})
				due = coretest.RedisTime(t, rdb)
			}
			coretest.Unlock(t, living)
			lease := coretest.AwaitLease(t, writer)
			late := coretest.GrantedAt(lease).Sub(due)
			t.Logf("entered %v after it could", late)
			if late < 0 || late > coretest.Within/4 {
				t.Errorf("entered %v after it could", late)
			}
			coretest.Unlock(t, lease)
			coretest.AwaitTidy(t, rdb)
		})
	}
}

// TestSharesKeepTheirOwnTime: whatever happens to one share, a renewal, an extension, its end, the times of the others
// stay as they are.
func TestSharesKeepTheirOwnTime(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb)
	lock := locks.Read("name")
	short := coretest.MustLock(t, lock, core.WithFixedTTL(coretest.Within))
	longer := coretest.MustLock(t, lock, core.WithFixedTTL(coretest.Long))
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
				if left := end.Sub(coretest.RedisTime(t, rdb)); h.Owner == l.Owner() && (h.TTL < left || h.TTL > left+coretest.Within/2) {
					t.Errorf("after %s, Inspect says %v is left, not %v", after, h.TTL, left)
				}
			}
		}
	}
	renewed := coretest.MustLock(t, lock, core.WithTTL(2*time.Second))
	unmoved("the entry of another")
	for range 2 {
		coretest.AwaitRenewal(t, renewed)
		unmoved("a renewal of another")
	}
	if err := renewed.Extend(ctx, 2*coretest.Long); err != nil {
		t.Fatal(err)
	}
	unmoved("an extension of another")
	again := coretest.MustLockWith(t, renewed.Context(), lock, core.WithTTL(3*coretest.Long))
	unmoved("a second entry of another")
	coretest.Unlock(t, again)
	coretest.Unlock(t, renewed)
	unmoved("the end of another")
	if left := rdb.PTTL(ctx, "lock:name").Val(); left < coretest.Long-coretest.Within || left > coretest.Long {
		t.Errorf("the lock lasts %v, not as long as its last share", left)
	}
	coretest.Unlock(t, longer)
	if left := rdb.PTTL(ctx, "lock:name").Val(); left > coretest.Within {
		t.Errorf("the lock lasts %v, longer than its last share", left)
	}
	coretest.Unlock(t, short)
	coretest.AwaitTidy(t, rdb)
}

// TestDeadShareUnderAWriter: a writer's own share ends without being unlocked. However long the writer continues, its
// renewals keep what is needed to find that out.
func TestDeadShareUnderAWriter(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb, relay := server.Client(), server.Relay()
	writer := coretest.MustLock(t, coretest.NewClient(t, rdb).Write("name"), core.WithTTL(4*time.Second))
	share := coretest.MustLock(t, coretest.NewClient(t, relay.Client()).Read("name"), core.WithOwner(writer.Owner()),
		core.WithFixedTTL(time.Second))
	relay.Drop(testkit.Both)
	coretest.WaitFor(t, share.Done(), "the share to end")
	coretest.AwaitRenewed(t, []*core.Lease{writer}, 8*time.Second) // longer than the share's key was given at first
	if writer.Context().Err() != nil {
		t.Fatal("the writer's lease was lost")
	}
	if _, err := coretest.NewClient(t, rdb).Fair("name").TryLock(ctx); err == nil {
		t.Error("locked")
	}
	for field := range rdb.HGetAll(ctx, "lock:name").Val() {
		if strings.HasPrefix(field, "share:") || strings.HasPrefix(field, "read:") {
			t.Errorf("%s was left", field)
		}
	}
	coretest.Unlock(t, writer)
	relay.Heal()
}
