package lease_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestExtendBeyondMaxHold: Redis keeps the lock for one TTL after its longest time at most.
func TestExtendBeyondMaxHold(t *testing.T) {
	for name := range coretest.Strategies(nil) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			rdb := testkit.Start(t).Client()
			lock := coretest.Strategies(coretest.NewClient(t, rdb))[name]("name", core.WithTTL(10*time.Second), core.WithMaxHold(30*time.Second))
			lease := coretest.MustLock(t, lock)
			if err := lease.Extend(ctx, time.Hour); err != nil {
				t.Fatal(err)
			}
			if left := rdb.PTTL(ctx, "lock:name").Val(); left > 40*time.Second || left < 10*time.Second {
				t.Errorf("kept for %v", left)
			}
			coretest.Unlock(t, lease)
		})
	}
}

// TestMinHold: the least time bounds the TTL from below, survives re-entry in both directions, and leaves no
// owner behind.
func TestMinHold(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(time.Second))
	for name, keep := range map[string][2]time.Duration{
		"alone": {coretest.Long}, "longer outside": {coretest.Long, 10 * time.Millisecond}, "longer inside": {0, coretest.Long},
	} {
		outer := coretest.MustLock(t, locks.Mutex(name), core.WithMinHold(keep[0]))
		if keep[0] == coretest.Long {
			if left := coretest.LeftFor(t, rdb, name); left < coretest.Long-coretest.Within {
				t.Errorf("%s: a crash would free it after %v", name, left)
			}
		}
		if keep[1] != 0 {
			coretest.Unlock(t, coretest.MustLockWith(t, outer.Context(), locks.Mutex(name), core.WithMinHold(keep[1])))
		}
		coretest.Unlock(t, outer)
		if left := coretest.LeftFor(t, rdb, name); left < coretest.Long-coretest.Within || left > coretest.Long {
			t.Errorf("%s: %v left after unlock, want %v from the grant", name, left, coretest.Long)
		}
		if info, err := locks.Inspect(ctx, name); err != nil || len(info.Holders) != 0 || info.Mode != core.ModeMutex {
			t.Errorf("%s: after unlock %+v, %v", name, info, err)
		}
	}
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("shorter"), core.WithTTL(coretest.Long), core.WithMinHold(10*time.Second)))
	if left := coretest.LeftFor(t, rdb, "shorter"); left > 10*time.Second {
		t.Errorf("%v left after unlock, though only 10s were asked for", left)
	}
	// As a server's clock that was an hour ahead at the grant would have left it.
	ahead := coretest.MustLock(t, locks.Mutex("ahead"), core.WithMinHold(time.Second))
	rdb.HSet(ctx, "lock:ahead", "min_hold_until", time.Now().Add(time.Hour).UnixMicro())
	coretest.Unlock(t, ahead)
	if left := rdb.PTTL(ctx, "lock:ahead").Val(); left > time.Second {
		t.Errorf("taken for %v after the clock was set back", left)
	}
}
