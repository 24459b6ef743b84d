//go:build unix

package core_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestPausedWaiterKeepsItsPlace freezes a process that waits until its place is given up. When it goes on, it is
// again before those that came after it, whether its place was still there or had been taken out.
func TestPausedWaiterKeepsItsPlace(t *testing.T) {
	t.Parallel()
	for _, holder := range []string{"Write", "Read"} { // under which the dead are swept out later, or at once
		t.Run(holder, func(t *testing.T) {
			t.Parallel()
			server := testkit.Start(t)
			rdb := server.Client()
			locks := newClient(t, rdb, core.WithTTL(long))
			held := mustLock(t, strategies(locks)[holder]("name"))
			paused := startStaying(t, server, "Fair", 1, long)
			awaitQueue(t, locks, "name", 1)
			behind := leaseLater(t, locks.Fair("name"))
			awaitQueue(t, locks, "name", 2)

			if err := paused.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			stopped := time.Now()
			testkit.Eventually(t, within, "its time to pass", func() bool { return time.Since(stopped) > placeTTL })
			awaitQueue(t, locks, "name", 1)
			if holder == "Read" {
				testkit.Eventually(t, within, "its place to be taken out", func() bool {
					return rdb.HLen(context.Background(), "holdfast:waiters:{lock:name}").Val() == 1
				})
			}
			if err := paused.cmd.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			awaitQueue(t, locks, "name", 2)
			unlock(t, held)
			first := paused.entered(t)
			paused.finish(t)
			second := awaitLease(t, behind)
			unlock(t, second)
			if first.Token >= second.Token() {
				t.Errorf("token %d came after %d", first.Token, second.Token())
			}
		})
	}
}
