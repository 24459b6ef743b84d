package core_test

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestBeginInAGroupWithoutHDEL: a new record needs no HDEL. If the user may not use it, no record without an expiry stays.
func TestBeginInAGroupWithoutHDEL(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
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
			server := testkit.Start(t)
			locks := newClient(t, restricted(t, server, "+@all"), core.WithTTL(long))
			a := mustBegin(t, locks.Once("{a}:1", core.WithQuota(1)))
			setRight(t, server, "-"+command)
			if err := a.Release(ctx); !errors.Is(err, core.ErrPermission) {
				t.Errorf("without the right: %v", err)
			}
			_, err := locks.Once("{a}:2", core.WithQuota(1)).Begin(ctx)
			wantErr(t, err, core.ErrTooManyKeys) // the first still counts
			setRight(t, server, "+"+command)
			testkit.Eventually(t, within, "the release", func() bool {
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

// TestWithdrawWithoutHSET: a withdrawal without the right does nothing and says so. Later, the next attempt has its number.
func TestWithdrawWithoutHSET(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	once := newClient(t, restricted(t, server, "+@all"), core.WithTTL(long)).Once("name")
	wantErr(t, mustBegin(t, once).Release(ctx), nil)
	second := mustBegin(t, once)
	setRight(t, server, "-hset")
	if err := second.Withdraw(ctx); !errors.Is(err, core.ErrPermission) {
		t.Errorf("without the right: %v", err)
	}
	if state := mustPeek(t, locksOf(t, server.Client(), "name")).State; state != core.StateRunning {
		t.Errorf("the attempt is %q", state)
	}
	setRight(t, server, "+hset")
	testkit.Eventually(t, within, "the withdrawal", func() bool {
		return server.Client().HGet(ctx, recordOf("name"), "state").Val() == ""
	})
	if next := mustBegin(t, once); next.Number() != 2 {
		t.Errorf("attempt %d after a withdrawal", next.Number())
	}
}

// TestNoKeyWithoutExpiryWithoutPEXPIRE: the marks that Forget, Resolve and ForceUnlock leave have an expiry, or are not
// written.
func TestNoKeyWithoutExpiryWithoutPEXPIRE(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	locks := newClient(t, restricted(t, server, "+@all"), core.WithTTL(long))
	for _, key := range []string{"forgotten", "resolved"} {
		wantErr(t, mustBegin(t, locks.Once(key, core.WithFailurePolicy(core.HoldFailures))).Hold(ctx, "reason"), nil)
	}
	mustLock(t, locks.Mutex("forced"), core.WithMinHold(long/2))
	setRight(t, server, "-pexpire")
	for what, err := range map[string]error{
		"Forget":  forgetNow(ctx, locks.Once("forgotten")),
		"Resolve": resolveNow(ctx, locks.Once("resolved"), nil),
	} {
		if !errors.Is(err, core.ErrPermission) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := locks.ForceUnlock(ctx, "forced"); !errors.Is(err, core.ErrPermission) {
		t.Errorf("ForceUnlock: %v", err)
	}
	wantExpiries(t, server.Client())
}
