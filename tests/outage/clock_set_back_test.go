package outage_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
	"github.com/redis/go-redis/v9"
)

// TestClockSetBack: after the server's clock was set back, a lock's expiry lies far in the future, as it does
// here. Neither a living nor a crashed holder may block the name for that long.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb)
	for name, crashed := range map[string]bool{"renewed": false, "crashed": true} {
		option := core.WithTTL(time.Second)
		if crashed {
			option = core.WithFixedTTL(time.Second)
		}
		lease := coretest.MustLock(t, locks.Mutex(name), option)
		rdb.PExpire(ctx, "lock:"+name, time.Hour)
		if crashed {
			_, _ = coretest.NewClient(t, rdb).Mutex(name).TryLock(ctx)
		}
		testkit.Eventually(t, coretest.Within, "the expiry to be cut back", func() bool {
			return rdb.PTTL(ctx, "lock:"+name).Val() <= time.Second
		})
		_ = lease
	}
}

// TestTokenOutlivesAClockStep: a grant after the clock was set back gets a greater token all the same. The step
// is made by writing the token that a clock an hour ahead would have left.
func TestTokenOutlivesAClockStep(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb)
	ahead := time.Now().Add(time.Hour).UnixMicro()
	rdb.Set(ctx, "holdfast:token", ahead, time.Hour)
	last := ahead
	for range 3 {
		lease := coretest.MustLock(t, locks.Mutex("name"))
		if lease.Token() != last+1 {
			t.Errorf("token %d after %d", lease.Token(), last)
		}
		last = lease.Token()
		coretest.Unlock(t, lease)
	}
	if ttl := rdb.PTTL(ctx, "holdfast:token").Val(); ttl < time.Hour {
		t.Errorf("the token is remembered for %v", ttl)
	}
}

// TestCrashedHolderAfterClockStep: what TestClockSetBack checks, for a holder that has really gone.
func TestCrashedHolderAfterClockStep(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	rdb.HSet(ctx, "lock:name", "dead:1", 1, "hold:dead:1", 1, "mode", "mutex", "token", 1, "ttl", 60_000)
	rdb.PExpire(ctx, "lock:name", time.Hour)
	if left := coretest.LeftFor(t, rdb, "name"); left > time.Minute {
		t.Errorf("the waiter is told to wait for %v", left)
	}
	if left := rdb.PTTL(ctx, "lock:name").Val(); left > time.Minute || left <= 0 {
		t.Errorf("blocked for %v", left)
	}

	lease := coretest.MustLock(t, coretest.NewClient(t, rdb).Mutex("extended"), core.WithFixedTTL(10*time.Second))
	rdb.PExpire(ctx, "lock:extended", time.Hour)
	if err := lease.Extend(ctx, coretest.Long); err != nil {
		t.Errorf("extend: %v", err)
	}
	if left := rdb.PTTL(ctx, "lock:extended").Val(); left > coretest.Long || left < coretest.Long-coretest.Within {
		t.Errorf("%v left after Extend(%v)", left, coretest.Long)
	}
}

// TestCrashedHolderWithoutExpiry: an operator has removed the expiry of a lock, or moved the data without it. The longest TTL
// that was requested counts from the next request on.
func TestCrashedHolderWithoutExpiry(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	crashed, locks := coretest.NewClient(t, rdb), coretest.NewClient(t, rdb)
	for _, next := range []struct {
		name string
		lock *core.Lock
	}{
		{"mutex", locks.Mutex("mutex")},
		{"line", locks.Fair("line")},
		{"multi", core.Multi(locks.Mutex("multi"), locks.Mutex("another"))},
	} {
		lease := coretest.MustLock(t, crashed.Mutex(next.name), core.WithFixedTTL(time.Second))
		if _, err := locks.Mutex(next.name).TryLock(ctx); !errors.Is(err, core.ErrNotAcquired) {
			t.Fatalf("%s: %v", next.name, err)
		}
		lease.Abandon()
		rdb.Persist(ctx, "lock:"+next.name)
		coretest.Unlock(t, coretest.MustLock(t, next.lock, core.WithWait(coretest.Long)))
	}
	// Redisson's own lock has no longest TTL, so its end is not known.
	rdb.HSet(ctx, "lock:theirs", "0d1d9bca-3c1f-4b6e-9d5e-6a1b7c8d9e0f:1", 1)
	if _, err := locks.Mutex("theirs").TryLock(ctx); !errors.Is(err, core.ErrNotAcquired) {
		t.Errorf("error %v", err)
	}
	if left := rdb.PTTL(ctx, "lock:theirs").Val(); left != -1 {
		t.Errorf("the lock of another client got an expiry: %v", left)
	}
}

// TestClockSetBackInLine: after the server's clock was set back, expiries lie far in the future, as they do here. No
// crashed holder may block the name for that long, nor a crashed waiter.
func TestClockSetBackInLine(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb)
	ahead := time.Now().Add(time.Hour).UnixMilli()
	coretest.MustLock(t, locks.Fair("writer"), core.WithFixedTTL(5*time.Second))
	coretest.Expand(t, locks, "writer")
	rdb.HSet(ctx, "lock:writer", "exclusive_until", ahead)
	rdb.PExpire(ctx, "lock:writer", time.Hour)
	reader := coretest.MustLock(t, locks.Read("reader"), core.WithFixedTTL(5*time.Second))
	coretest.Expand(t, locks, "reader")
	id := strings.TrimPrefix(field(t, rdb.HKeys(ctx, "lock:reader").Val(), "share:"), "share:")
	rdb.ZAdd(ctx, "holdfast:share_expiries:{lock:reader}", redis.Z{Score: float64(ahead), Member: id})
	rdb.PExpire(ctx, "lock:reader", time.Hour)
	rdb.PExpire(ctx, "holdfast:share_expiries:{lock:reader}", time.Hour)

	coretest.MustLock(t, locks.Fair("line"), core.WithFixedTTL(5*time.Second))
	rdb.ZAdd(ctx, "holdfast:exclusive_queue:{lock:line}", redis.Z{Score: 1, Member: "dead:1"})
	rdb.HSet(ctx, "holdfast:waiters:{lock:line}", "dead:1", fmt.Sprint(ahead, " 1000 fair dead"))
	coretest.MustLock(t, locks.Fair("compact writer"), core.WithFixedTTL(5*time.Second)) // no other client has asked for these two
	coretest.MustLock(t, locks.Read("compact reader"), core.WithFixedTTL(5*time.Second))
	rdb.PExpire(ctx, "lock:compact writer", time.Hour)
	rdb.PExpire(ctx, "lock:compact reader", time.Hour)
	for _, name := range []string{"writer", "reader", "line", "compact writer", "compact reader"} {
		coretest.Unlock(t, coretest.MustLock(t, locks.Fair(name)))
	}
	coretest.WaitFor(t, reader.Done(), "the reader's lease to end")
}

// TestClockSetBackKeepsTheOrder: a waiter that comes after the server's clock was set back stands behind those that came before.
func TestClockSetBackKeepsTheOrder(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	holder := coretest.MustLock(t, coretest.NewClient(t, rdb).Fair("name"), core.WithTTL(coretest.Long))
	inLine := func(n int64) {
		testkit.Eventually(t, coretest.Within, "the waiters to be in line", func() bool {
			return rdb.ZCard(ctx, "holdfast:exclusive_queue:{lock:name}").Val() == n
		})
	}
	order := make(chan string, 2)
	wait := func(who string) {
		lock := coretest.NewClient(t, rdb).Fair("name")
		go func() {
			lease, err := lock.Lock(ctx)
			if err != nil {
				order <- err.Error()
				return
			}
			order <- who
			_ = lease.Unlock(ctx) // the order is told already
		}()
	}
	wait("first")
	inLine(1)
	id := rdb.ZRange(ctx, "holdfast:exclusive_queue:{lock:name}", 0, 0).Val()[0]
	ahead := float64(time.Now().Add(time.Hour).UnixMicro())
	rdb.ZAdd(ctx, "holdfast:exclusive_queue:{lock:name}", redis.Z{Score: ahead, Member: id}) // of an hour ago
	wait("second")
	inLine(2)
	coretest.Unlock(t, holder)
	for _, want := range []string{"first", "second"} {
		select {
		case got := <-order:
			if got != want {
				t.Fatalf("%s was let in instead of the %s", got, want)
			}
		case <-time.After(coretest.Within):
			t.Fatal("nobody is let in")
		}
	}
}
