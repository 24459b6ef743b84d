//go:build unix

package fair_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestPausedWaiterKeepsItsPlace freezes a process that waits until its place is given up. When it continues, it is
// again before those that came after it, whether its place was still there or had been taken out.
func TestPausedWaiterKeepsItsPlace(t *testing.T) {
	t.Parallel()
	for _, holder := range []string{"Write", "Read"} { // under which the dead are swept out later, or at once
		t.Run(holder, func(t *testing.T) {
			t.Parallel()
			server := testkit.Start(t)
			rdb := server.Client()
			locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
			held := coretest.MustLock(t, coretest.Strategies(locks)[holder]("name"))
			paused := coretest.StartStaying(t, server, "Fair", 1, coretest.Long)
			coretest.AwaitQueue(t, locks, "name", 1)
			behind := coretest.LeaseLater(t, locks.Fair("name"))
			coretest.AwaitQueue(t, locks, "name", 2)

			if err := paused.Cmd.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			stopped := time.Now()
			testkit.Eventually(t, coretest.Within, "its time to pass", func() bool { return time.Since(stopped) > coretest.PlaceTTL })
			coretest.AwaitQueue(t, locks, "name", 1)
			if holder == "Read" {
				testkit.Eventually(t, coretest.Within, "its place to be taken out", func() bool {
					return rdb.HLen(context.Background(), "holdfast:waiters:{lock:name}").Val() == 1
				})
			}
			if err := paused.Cmd.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			coretest.AwaitQueue(t, locks, "name", 2)
			coretest.Unlock(t, held)
			first := paused.Entered(t)
			paused.Finish(t)
			second := coretest.AwaitLease(t, behind)
			coretest.Unlock(t, second)
			if first.Token >= second.Token() {
				t.Errorf("token %d came after %d", first.Token, second.Token())
			}
		})
	}
}
