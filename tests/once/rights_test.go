package once_test

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestBeginInAGroupWithoutHDEL: a new record needs no HDEL. If the user may not use it, no record without an expiry stays.
func TestBeginInAGroupWithoutHDEL(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := coretest.NewClient(t, coretest.Restricted(t, server, "+@all", "-hdel"), core.WithTTL(coretest.Long))
	coretest.MustBegin(t, locks.Once("{a}:1", core.WithGroup(), core.WithFailurePolicy(core.HoldFailures)))
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
			locks := coretest.NewClient(t, coretest.Restricted(t, server, "+@all"), core.WithTTL(coretest.Long))
			a := coretest.MustBegin(t, locks.Once("{a}:1", core.WithQuota(1)))
			coretest.SetRight(t, server, "-"+command)
			if err := a.Release(ctx); !errors.Is(err, core.ErrPermission) {
				t.Errorf("without the right: %v", err)
			}
			_, err := locks.Once("{a}:2", core.WithQuota(1)).Begin(ctx)
			coretest.WantErr(t, err, core.ErrTooManyKeys) // the first still counts
			coretest.SetRight(t, server, "+"+command)
			testkit.Eventually(t, coretest.Within, "the release", func() bool {
				return server.Client().Exists(ctx, coretest.RecordOf("{a}:1")).Val() == 0
			})
			next := coretest.MustBegin(t, locks.Once("{a}:2", core.WithQuota(1)))
			coretest.WantErr(t, next.Release(ctx), nil)
			if again := coretest.MustBegin(t, locks.Once("{a}:1", core.WithQuota(1))); again.Number() != 1 {
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
	once := coretest.NewClient(t, coretest.Restricted(t, server, "+@all"), core.WithTTL(coretest.Long)).Once("name")
	coretest.WantErr(t, coretest.MustBegin(t, once).Release(ctx), nil)
	second := coretest.MustBegin(t, once)
	coretest.SetRight(t, server, "-hset")
	if err := seal.AttemptOf(second).Withdraw(ctx); !errors.Is(err, core.ErrPermission) {
		t.Errorf("without the right: %v", err)
	}
	if state := coretest.MustPeek(t, locksOf(t, server.Client(), "name")).State; state != core.StateRunning {
		t.Errorf("the attempt is %q", state)
	}
	coretest.SetRight(t, server, "+hset")
	testkit.Eventually(t, coretest.Within, "the withdrawal", func() bool {
		return server.Client().HGet(ctx, coretest.RecordOf("name"), "state").Val() == ""
	})
	if next := coretest.MustBegin(t, once); next.Number() != 2 {
		t.Errorf("attempt %d after a withdrawal", next.Number())
	}
}

// TestNoKeyWithoutExpiryWithoutPEXPIRE: the marks that Forget, Resolve and ForceUnlock leave have an expiry, or are not
// written.
func TestNoKeyWithoutExpiryWithoutPEXPIRE(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	locks := coretest.NewClient(t, coretest.Restricted(t, server, "+@all"), core.WithTTL(coretest.Long))
	for _, key := range []string{"forgotten", "resolved"} {
		coretest.WantErr(t, coretest.MustBegin(t, locks.Once(key, core.WithFailurePolicy(core.HoldFailures))).Hold(ctx, "reason"), nil)
	}
	coretest.MustLock(t, locks.Mutex("forced"), core.WithMinHold(coretest.Long/2))
	coretest.SetRight(t, server, "-pexpire")
	for what, err := range map[string]error{
		"Forget":  coretest.ForgetNow(ctx, locks.Once("forgotten")),
		"Resolve": coretest.ResolveNow(ctx, locks.Once("resolved"), nil),
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
