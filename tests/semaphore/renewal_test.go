package semaphore_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestRenewalBesidePermits: an owner has permits, which nothing renews, and one more hold of the lock. The renewals of that hold
// keep the key of the slots. Without them, Redis would forget the slots while the owner still has its permits.
func TestRenewalBesidePermits(t *testing.T) {
	t.Parallel()
	const ttl = 3 * time.Second
	for name, nest := range map[string]func(t *testing.T, locks *core.Client) *core.Lease{
		"a reader's": func(t *testing.T, locks *core.Client) *core.Lease {
			permits := coretest.MustLock(t, locks.Semaphore("name", 2), core.WithFixedTTL(ttl/2))
			return coretest.MustLockWith(t, permits.Context(), locks.Read("name"), core.WithTTL(ttl))
		},
		"a writer's": func(t *testing.T, locks *core.Client) *core.Lease {
			writer := coretest.MustLock(t, locks.Write("name"), core.WithTTL(ttl))
			coretest.MustLockWith(t, writer.Context(), locks.Semaphore("name", 2), core.WithTTL(ttl/2)).Abandon()
			return writer
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := testkit.Start(t).Client()
			locks := coretest.NewClient(t, rdb)
			lease := nest(t, locks)
			for end := lease.ValidUntil().Add(time.Second); time.Now().Before(end); {
				coretest.AwaitRenewal(t, lease)
			}
			if rdb.Exists(context.Background(), "holdfast:slots:{lock:name}").Val() != 1 {
				t.Error("the slots are gone")
			}
			coretest.Unlock(t, lease)
		})
	}
}
