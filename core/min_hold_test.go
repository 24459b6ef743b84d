package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestMinHold: the least time bounds the TTL from below, survives re-entry in both directions, and leaves no
// owner behind.
func TestMinHold(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
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
