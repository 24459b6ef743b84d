package mutex_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestKilledWaiters kills a process that waits: in the middle of the line, as its head, with twenty waiters. The
// others are served in order, and all that died cost them the time of one place.
func TestKilledWaiters(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		strategy string
		before   bool // a waiter stands before those that die
		dying    int
	}{
		"in the middle":   {"Fair", true, 1},
		"at the head":     {"Fair", false, 1},
		"twenty":          {"Fair", true, 20},
		"twenty readers":  {"FairRead", true, 20},
		"readers at head": {"Read", false, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testkit.Start(t)
			locks := coretest.NewClient(t, server.Client())
			lock := locks.FairWrite("name")
			held := coretest.MustLock(t, lock)
			line := 0
			join := func(n int) { line += n; coretest.AwaitQueue(t, locks, "name", line) }
			var first <-chan *core.Lease
			if test.before {
				first = coretest.LeaseLater(t, lock)
				join(1)
			}
			dying := coretest.StartStaying(t, server, test.strategy, test.dying, coretest.Long)
			join(test.dying)
			second := coretest.LeaseLater(t, lock)
			join(1)
			third := coretest.LeaseLater(t, lock)
			join(1)

			dying.Kill(t)
			last := held
			for _, next := range []<-chan *core.Lease{first, second, third} {
				if next == nil {
					continue
				}
				from := coretest.RedisTime(t, server.Client())
				coretest.Unlock(t, last)
				lease := coretest.AwaitLease(t, next)
				took := coretest.GrantedAt(lease).Sub(from)
				if lease.Token() <= last.Token() {
					t.Errorf("token %d came after %d", lease.Token(), last.Token())
				}
				if next == second {
					t.Logf("the dead cost %v", took)
				}
				if took > coretest.PlaceTTL+coretest.Within/4 {
					t.Errorf("entered after %v", took)
				}
				last = lease
			}
			coretest.Unlock(t, last)
			coretest.AwaitTidy(t, server.Client())
		})
	}
}

// TestKilledHolder kills the process that holds the lock: the waiters get it after its TTL, in order.
func TestKilledHolder(t *testing.T) {
	t.Parallel()
	for _, strategy := range []string{"Fair", "Write", "Read"} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			const ttl = 4 * time.Second
			server := testkit.Start(t)
			rdb := server.Client()
			dying := coretest.StartStaying(t, server, strategy, 1, ttl)
			holder := dying.Entered(t)
			locks := coretest.NewClient(t, rdb)
			first := coretest.LeaseLater(t, locks.Write("name"))
			coretest.AwaitQueue(t, locks, "name", 1)
			second := coretest.LeaseLater(t, locks.Fair("name"))
			coretest.AwaitQueue(t, locks, "name", 2)
			dying.Kill(t)
			ends := coretest.RedisTime(t, rdb).Add(rdb.PTTL(context.Background(), "lock:name").Val())
			lease := coretest.AwaitLease(t, first)
			late := coretest.GrantedAt(lease).Sub(ends)
			t.Logf("entered %v after the dead holder's time", late)
			if late < -10*time.Millisecond || late > coretest.Within/4 {
				t.Errorf("entered %v after the dead holder's time", late)
			}
			coretest.Unlock(t, lease)
			next := coretest.AwaitLease(t, second)
			if holder.Token >= lease.Token() || lease.Token() >= next.Token() {
				t.Errorf("tokens %d, %d, %d do not grow", holder.Token, lease.Token(), next.Token())
			}
			coretest.Unlock(t, next)
			coretest.AwaitTidy(t, rdb)
		})
	}
}
