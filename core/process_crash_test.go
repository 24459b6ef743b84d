package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
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
			locks := newClient(t, server.Client())
			lock := locks.FairWrite("name")
			held := mustLock(t, lock)
			line := 0
			join := func(n int) { line += n; awaitQueue(t, locks, "name", line) }
			var first <-chan *core.Lease
			if test.before {
				first = leaseLater(t, lock)
				join(1)
			}
			dying := startStaying(t, server, test.strategy, test.dying, long)
			join(test.dying)
			second := leaseLater(t, lock)
			join(1)
			third := leaseLater(t, lock)
			join(1)

			dying.kill(t)
			last := held
			for _, next := range []<-chan *core.Lease{first, second, third} {
				if next == nil {
					continue
				}
				from := redisTime(t, server.Client())
				unlock(t, last)
				lease := awaitLease(t, next)
				took := grantedAt(lease).Sub(from)
				if lease.Token() <= last.Token() {
					t.Errorf("token %d came after %d", lease.Token(), last.Token())
				}
				if next == second {
					t.Logf("the dead cost %v", took)
				}
				if took > placeTTL+within/4 {
					t.Errorf("entered after %v", took)
				}
				last = lease
			}
			unlock(t, last)
			awaitTidy(t, server.Client())
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
			dying := startStaying(t, server, strategy, 1, ttl)
			holder := dying.entered(t)
			locks := newClient(t, rdb)
			first := leaseLater(t, locks.Write("name"))
			awaitQueue(t, locks, "name", 1)
			second := leaseLater(t, locks.Fair("name"))
			awaitQueue(t, locks, "name", 2)
			dying.kill(t)
			ends := redisTime(t, rdb).Add(rdb.PTTL(context.Background(), "lock:name").Val())
			lease := awaitLease(t, first)
			late := grantedAt(lease).Sub(ends)
			t.Logf("entered %v after the dead holder's time", late)
			if late < -10*time.Millisecond || late > within/4 {
				t.Errorf("entered %v after the dead holder's time", late)
			}
			unlock(t, lease)
			next := awaitLease(t, second)
			if holder.Token >= lease.Token() || lease.Token() >= next.Token() {
				t.Errorf("tokens %d, %d, %d do not grow", holder.Token, lease.Token(), next.Token())
			}
			unlock(t, next)
			awaitTidy(t, rdb)
		})
	}
}
