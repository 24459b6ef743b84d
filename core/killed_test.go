package core_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// placeTTL is how long Redis keeps the place of a waiter that gives no sign of life, and what was granted to it.
const placeTTL = 5 * time.Second

// granted is what a worker says when it gets the lock.
type granted struct {
	Owner string
	Token int64
}

// stayUntilTold takes the lock "name" with some goroutines at once, which unlock when the process's input ends.
func stayUntilTold(rdb *redis.Client, say func(any), strategy string, goroutines int, ttl time.Duration) error {
	locks, err := core.New(rdb, core.WithTTL(ttl))
	if err != nil {
		return err
	}
	defer locks.Close()
	told := make(chan struct{})
	go func() {
		defer close(told)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	var all sync.WaitGroup
	failed := make(chan error, goroutines)
	for range goroutines {
		all.Go(func() {
			lease, err := strategies(locks)[strategy]("name").Lock(context.Background())
			if err == nil {
				say(granted{lease.Owner(), lease.Token()})
				<-told
				err = lease.Unlock(context.Background())
			}
			if err != nil {
				failed <- err
			}
		})
	}
	all.Wait()
	close(failed)
	return <-failed
}

// startStaying starts a worker that takes the lock with so many goroutines, and keeps it until finish.
func startStaying(t *testing.T, server *redistest.Server, strategy string, goroutines int, ttl time.Duration) *worker {
	t.Helper()
	return startWorker(t, fmt.Sprint(strategy, " ", server.Network(), " ", server.Addr(), " ", goroutines, " ",
		int64(ttl)))
}

// entered returns what the worker says when it gets the lock.
func (w *worker) entered(t *testing.T) (g granted) {
	t.Helper()
	select {
	case line := <-w.lines:
		if err := json.Unmarshal(line, &g); err != nil {
			t.Fatalf("worker says %q: %v", line, err)
		}
	case <-time.After(within):
		t.Fatalf("waited %v for a worker to get the lock", within)
	}
	return g
}

// finish lets the worker unlock.
func (w *worker) finish(t *testing.T) {
	t.Helper()
	_ = w.stdin.Close()
	if err := receive(t, w.ended); err != nil {
		t.Errorf("worker: %v", err)
	}
}

// kill ends the worker without a chance to do anything.
func (w *worker) kill(t *testing.T) {
	t.Helper()
	if err := w.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if receive(t, w.ended) == nil {
		t.Error("the worker had ended before it was killed")
	}
}

// leaseLater locks in another goroutine; the lease arrives when it is granted.
func leaseLater(t testing.TB, l core.Locker, opts ...core.LockOption) <-chan *core.Lease {
	done := make(chan *core.Lease, 1)
	go func() {
		defer close(done)
		lease, err := l.Lock(context.Background(), opts...)
		if err != nil {
			t.Errorf("lock: %v", err)
			return
		}
		done <- lease
	}()
	return done
}

func awaitLease(t testing.TB, done <-chan *core.Lease) *core.Lease {
	t.Helper()
	select {
	case lease := <-done:
		if lease == nil {
			t.FailNow()
		}
		return lease
	case <-time.After(within):
		t.Fatalf("waited %v for the lock", within)
		return nil
	}
}

// awaitTidy returns once nothing is left of any lock but what expires by itself: tokens and the ends of holds.
func awaitTidy(t testing.TB, rdb *redis.Client) {
	t.Helper()
	ctx := context.Background()
	redistest.Eventually(t, within, "the keys to be gone", func() bool {
		for _, key := range rdb.Keys(ctx, "*").Val() {
			left := rdb.PTTL(ctx, key).Val()
			if left == -1 {
				t.Errorf("%s stays for ever", key)
			}
			memory := strings.HasPrefix(key, "holdfast:token") || strings.HasPrefix(key, "holdfast:released")
			if left != -2 && !memory {
				return false
			}
		}
		return true
	})
}

// redisTime returns the time by Redis's clock.
func redisTime(t testing.TB, rdb *redis.Client) time.Time {
	t.Helper()
	now, err := rdb.Time(context.Background()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// grantedAt returns when a lease was granted by Redis's clock, of which its token is made.
func grantedAt(lease *core.Lease) time.Time { return time.UnixMicro(lease.Token()) }

// TestKilledWaiters kills a process that waits: in the middle of the line, as its head, with twenty waiters. The
// others are served in order, and all that died cost them the time of one place.
func TestKilledWaiters(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		strategy string
		before   bool // somebody stands before those who die
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
			server := redistest.Start(t)
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

// TestKilledHolder kills the process that holds the lock: who waits gets it after its TTL, in order.
func TestKilledHolder(t *testing.T) {
	t.Parallel()
	for _, strategy := range []string{"Fair", "Write", "Read"} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			const ttl = 4 * time.Second
			server := redistest.Start(t)
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
