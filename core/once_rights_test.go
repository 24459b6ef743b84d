package core_test

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// TestBeginInAGroupWithoutHDEL: a new record needs no HDEL. If the user may not use it, no record without an expiry stays.
func TestBeginInAGroupWithoutHDEL(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	locks := newClient(t, restricted(t, server, "+@all", "-hdel"), core.WithTTL(long))
	mustBegin(t, locks.Once("{a}:1", core.WithGroup(), core.WithFailurePolicy(core.HoldFailures)))
	wantExpiry(t, server.Client(), "{a}:1")
}

// TestReleaseWithoutARight: a release that needs a command which the user may not use does nothing and says so. It works
// once the right is back, and leaves room in the group.
func TestReleaseWithoutARight(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, command := range []string{"del", "zrem", "hdel"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			locks := newClient(t, restricted(t, server, "+@all"), core.WithTTL(long))
			a := mustBegin(t, locks.Once("{a}:1", core.WithQuota(1)))
			setRight(t, server, "-"+command)
			if err := a.Release(ctx); !errors.Is(err, core.ErrPermission) {
				t.Errorf("without the right: %v", err)
			}
			setRight(t, server, "+"+command)
			redistest.Eventually(t, within, "the release", func() bool {
				return server.Client().Exists(ctx, recordOf("{a}:1")).Val() == 0
			})
			next := mustBegin(t, locks.Once("{a}:2", core.WithQuota(1)))
			wantErr(t, next.Release(ctx), nil)
			if again := mustBegin(t, locks.Once("{a}:1", core.WithQuota(1))); again.Number() != 1 {
				t.Errorf("attempt %d after a release", again.Number())
			}
		})
	}
}

// TestNoKeyWithoutExpiryWithoutPEXPIRE: the marks that Forget, Resolve and ForceUnlock leave have an expiry, or are not
// written.
func TestNoKeyWithoutExpiryWithoutPEXPIRE(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	locks := newClient(t, restricted(t, server, "+@all"), core.WithTTL(long))
	for _, key := range []string{"forgotten", "resolved"} {
		wantErr(t, mustBegin(t, locks.Once(key, core.WithFailurePolicy(core.HoldFailures))).Hold(ctx, "reason"), nil)
	}
	mustLock(t, locks.Mutex("forced"), core.WithMinHold(long/2))
	setRight(t, server, "-pexpire")
	for what, err := range map[string]error{
		"Forget":  locks.Once("forgotten").Forget(ctx),
		"Resolve": locks.Once("resolved").Resolve(ctx, nil),
	} {
		if !errors.Is(err, core.ErrPermission) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := locks.ForceUnlock(ctx, "forced"); !errors.Is(err, core.ErrPermission) {
		t.Errorf("ForceUnlock: %v", err)
	}
	wantNoEternalKey(t, server.Client())
}

// setRight gives the restricted user of the test a right, or takes one away.
func setRight(t testing.TB, server *redistest.Server, rule string) {
	t.Helper()
	wantErr(t, server.Client().Do(context.Background(), "ACL", "SETUSER", t.Name(), rule).Err(), nil)
}

// wantNoEternalKey checks that each key expires.
func wantNoEternalKey(t testing.TB, rdb *redis.Client) {
	t.Helper()
	ctx := context.Background()
	for _, key := range rdb.Keys(ctx, "*").Val() {
		if rdb.PTTL(ctx, key).Val() == -1 {
			t.Errorf("%s stays for ever", key)
		}
	}
}
