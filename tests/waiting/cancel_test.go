package waiting_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// leavings returns the keys of a lock that name its holders and waiters.
func leavings(rdb *redis.Client, name string) (keys []string) {
	for _, key := range rdb.Keys(context.Background(), "*lock:"+name+"*").Val() {
		if !strings.HasPrefix(key, "holdfast:token") && !strings.HasPrefix(key, "holdfast:released") {
			keys = append(keys, key)
		}
	}
	return keys
}

// TestCancelledWaiterLeaves: it is in line no more as soon as its client has nothing left to do, and the others are
// where they were.
func TestCancelledWaiterLeaves(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	leaving := coretest.NewClient(t, rdb)
	for kind, strategy := range coretest.OnlyQueued(leaving) {
		held := coretest.MustLock(t, locks.Write(kind))
		first := coretest.LeaseLater(t, locks.FairWrite(kind))
		coretest.AwaitQueue(t, locks, kind, 1)
		ctx, cancel := context.WithCancel(context.Background())
		cancelled := coretest.LockUntil(ctx, strategy(kind))
		coretest.AwaitQueue(t, locks, kind, 2)
		last := coretest.LeaseLater(t, locks.FairWrite(kind))
		coretest.AwaitQueue(t, locks, kind, 3)
		cancel()
		coretest.WantErr(t, coretest.Receive(t, cancelled), context.Canceled)
		testkit.Eventually(t, coretest.Within, "the waiter to be out of the line", func() bool {
			return rdb.HLen(context.Background(), "holdfast:waiters:{lock:"+kind+"}").Val() == 2
		})
		coretest.Unlock(t, held)
		before := coretest.AwaitLease(t, first)
		coretest.Unlock(t, before)
		after := coretest.AwaitLease(t, last)
		coretest.Unlock(t, after)
		if before.Token() >= after.Token() {
			t.Errorf("%s: tokens %d and %d", kind, before.Token(), after.Token())
		}
	}
}

// TestCancelledWriterLetsReadersIn: those behind it join the present readers in the moment in which it leaves.
func TestCancelledWriterLetsReadersIn(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	for kind, write := range coretest.Exclusives(locks) {
		if kind == "Mutex" {
			continue // has no place in line
		}
		held := coretest.MustLock(t, locks.Read(kind))
		ctx, cancel := context.WithCancel(context.Background())
		cancelled := coretest.LockUntil(ctx, write(kind))
		coretest.AwaitQueue(t, locks, kind, 1)
		var readers []<-chan *core.Lease
		for i := range 3 {
			readers = append(readers, coretest.LeaseLater(t, locks.Read(kind)))
			coretest.AwaitQueue(t, locks, kind, 2+i)
		}
		cancel()
		var info core.Info
		var err error
		testkit.Eventually(t, coretest.Within, "the writer to leave", func() bool {
			info, err = locks.Inspect(context.Background(), kind)
			return err == nil && len(info.Queue) <= len(readers)
		})
		if len(info.Queue) != 0 || len(info.Holders) != 1+len(readers) {
			t.Errorf("%s: after the writer has left: %+v", kind, info)
		}
		coretest.WantErr(t, coretest.Receive(t, cancelled), core.ErrNotAcquired)
		for _, reader := range readers {
			coretest.Unlock(t, coretest.AwaitLease(t, reader))
		}
		coretest.Unlock(t, held)
		if left := leavings(rdb, kind); len(left) != 0 {
			t.Errorf("%s: left behind: %v", kind, left)
		}
	}
}

// TestCancelledAtRandom cancels 200 waits of all kinds, at every moment between the request and the grant. When their
// clients are closed, which waits for what they do in the background, nothing may be left.
func TestCancelledAtRandom(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	var all sync.WaitGroup
	var clients []*core.Client
	for range 2 {
		locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
		clients = append(clients, locks)
		for _, strategy := range coretest.OnlyQueued(locks) {
			for range 4 {
				all.Go(func() {
					for cancelled := 0; cancelled < 5; {
						ctx, cancel := context.WithTimeout(context.Background(), rand.N(4*time.Millisecond))
						lease, err := strategy("name").Lock(ctx)
						cancel()
						switch {
						case err == nil:
							coretest.Unlock(t, lease)
						case errors.Is(err, context.DeadlineExceeded):
							cancelled++
						default:
							t.Errorf("lock: %v", err)
							return
						}
					}
				})
			}
		}
	}
	all.Wait()
	for _, locks := range clients {
		if err := locks.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if left := leavings(rdb, "name"); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	coretest.Unlock(t, coretest.MustLock(t, coretest.NewClient(t, rdb).Fair("name")))
}

// TestGrantAndCancelAtOnce: whether the waiter gets the lock or not, it does not stay granted to it.
func TestGrantAndCancelAtOnce(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	cancelling := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	kinds := coretest.OnlyQueued(cancelling)
	outcomes := make(map[bool]int)
	rounds := 0
	for kind := range kinds {
		for range 12 {
			rounds++
			name := fmt.Sprintf("name%02d", rounds)
			held := coretest.MustLock(t, locks.Write(name))
			ctx, cancel := context.WithCancel(context.Background())
			waiting := coretest.LockUntil(ctx, kinds[kind](name))
			coretest.AwaitQueue(t, locks, name, 1)
			// The way of the grant takes a few hundred microseconds.
			time.AfterFunc(rand.N(500*time.Microsecond), cancel)
			coretest.Unlock(t, held)
			err := coretest.Receive(t, waiting)
			if outcomes[err == nil]++; err != nil {
				coretest.WantErr(t, err, context.Canceled)
			}
		}
	}
	t.Logf("granted %d, cancelled %d", outcomes[true], outcomes[false])
	if err := cancelling.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	for n := range rounds {
		if left := leavings(rdb, fmt.Sprintf("name%02d", 1+n)); len(left) != 0 {
			t.Errorf("round %d left behind: %v", n, left)
		}
	}
}
