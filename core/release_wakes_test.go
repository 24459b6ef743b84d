package core_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestReleaseWakesWaiter: the message of a release wakes the waiter of a Mutex in another client. Otherwise it would ask only an
// hour later, or when the TTL ends.
func TestReleaseWakesWaiter(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	holder := coretest.MustLock(t, coretest.NewClient(t, server.Client()).Mutex("name"), core.WithTTL(coretest.Long))
	waiter := coretest.NewClient(t, server.Client())
	core.PollNever(waiter)
	granted := coretest.LeaseLater(t, waiter.Mutex("name"))
	testkit.Eventually(t, coretest.Within, "the client to wait to be woken", func() bool {
		return server.Client().ZCard(t.Context(), "holdfast:waiting_clients:{lock:name}").Val() == 1
	})
	coretest.Unlock(t, holder)
	coretest.Unlock(t, coretest.AwaitLease(t, granted))
}

// TestReleaseGrantsByMessage: the message of a release grants the lock to the first in the queue, which does not ask again. A
// waiter that is kept from running for seconds does ask, so one grant of several is enough.
func TestReleaseGrantsByMessage(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"Fair", "Read", "Write", "Semaphore"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			server := testkit.Start(t)
			var asked atomic.Int32
			waiter := coretest.NewClient(t, server.Client(), core.WithHooks(core.Hooks{
				AcquireEnd: func(_ context.Context, end core.AcquireEnd) { asked.Store(int32(end.Asked)) },
			}))
			locks := coretest.NewClient(t, server.Client(), core.WithTTL(coretest.Long))
			testkit.Eventually(t, coretest.Within, "a grant by message", func() bool {
				holder := coretest.MustLock(t, locks.Write("name"))
				granted := coretest.LeaseLater(t, coretest.Strategies(waiter)[kind]("name"))
				coretest.AwaitQueue(t, locks, "name", 1)
				coretest.Unlock(t, holder)
				coretest.Unlock(t, coretest.AwaitLease(t, granted))
				return asked.Load() == 1
			})
		})
	}
}
