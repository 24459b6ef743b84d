package inspect_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
	"github.com/redis/go-redis/v9"
)

// TestInspectAndForce: what operators see and do.
func TestInspectAndForce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb)
	if info, err := locks.Inspect(ctx, "name"); err != nil || info.Mode != "" || len(info.Holders) != 0 {
		t.Errorf("free lock: %+v, %v", info, err)
	}
	if forced, err := locks.ForceUnlock(ctx, "name"); forced || err != nil {
		t.Errorf("ForceUnlock of a free lock = %v, %v", forced, err)
	}
	const ttl = 9 * time.Second // so that the lease does not expire on a busy machine, and hears of the force within a third
	lease := coretest.MustLock(t, coretest.NewClient(t, rdb).Mutex("name"), core.WithTTL(ttl))
	waiting := coretest.LockLater(locks.Mutex("name"))
	coretest.AwaitListeners(t, locks, "name", 1)
	info, err := locks.Inspect(ctx, "name")
	if err != nil || info.Mode != core.ModeMutex || len(info.Holders) != 1 || info.Waiters != 1 ||
		info.TTL <= 0 || info.TTL > ttl {
		t.Fatalf("held lock: %+v, %v", info, err)
	}
	if h := info.Holders[0]; h.Owner != lease.Owner() || h.Token != lease.Token() || h.Holds != 1 ||
		h.Granted.IsZero() {
		t.Errorf("holder %+v", h)
	}
	if forced, err := locks.ForceUnlock(ctx, "name"); !forced || err != nil {
		t.Errorf("ForceUnlock = %v, %v", forced, err)
	}
	if err := coretest.Receive(t, waiting); err != nil {
		t.Errorf("the waiter did not get the forced lock: %v", err)
	}
	coretest.WaitFor(t, lease.Done(), "the holder to hear of it")
	coretest.WantErr(t, context.Cause(lease.Context()), core.ErrLeaseLost)
	coretest.WantErr(t, lease.Unlock(ctx), core.ErrNotHeld)

	rdb.Set(ctx, "lock:text", "foreign", 0)
	_, err = locks.Inspect(ctx, "text")
	coretest.WantErr(t, err, core.ErrWrongType)
	_, err = locks.ForceUnlock(ctx, "text")
	coretest.WantErr(t, err, core.ErrWrongType)
	_, err = locks.Inspect(ctx, "")
	coretest.WantErr(t, err, core.ErrInvalidName)
	_, err = locks.ForceUnlock(ctx, "a{")
	coretest.WantErr(t, err, core.ErrInvalidName)
}

// TestInspectWithoutPubSub: a user without the right to count subscribers still sees the lock.
func TestInspectWithoutPubSub(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := coretest.NewClient(t, coretest.Restricted(t, server, "+@all", "-pubsub"))
	coretest.MustLock(t, locks.Mutex("name"))
	info, err := locks.Inspect(context.Background(), "name")
	if err != nil || info.Waiters != -1 || len(info.Holders) != 1 {
		t.Errorf("Inspect = %+v, %v", info, err)
	}
}

// TestInspectIsBounded: a lock that many share and wait for is notified of in part, and counted in whole.
func TestInspectIsBounded(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb := server.Client()
	locks := coretest.NewClient(t, server.Client())
	coretest.MustLock(t, locks.Read("name"), core.WithTTL(coretest.Long))
	coretest.Expand(t, locks, "name")
	coretest.ShareOut(t, rdb, 3000, time.Now().Add(time.Hour))
	if _, err := rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i := range 3000 {
			id := fmt.Sprintf("waiting:%d", i)
			pipe.ZAdd(ctx, "holdfast:exclusive_queue:{lock:name}", redis.Z{Score: float64(i + 1), Member: id})
			pipe.HSet(ctx, "holdfast:waiters:{lock:name}", id, fmt.Sprintf("%d 1000 writing %s", time.Now().Add(time.Hour).UnixMilli(), id))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	info, err := locks.Inspect(ctx, "name")
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode != core.ModeRead || info.Shares != 3001 || len(info.Holders) != 1000 || info.Places != 3000 || len(info.Queue) != 1000 {
		t.Errorf("mode %q, %d of %d holders, %d of %d waiters", info.Mode, len(info.Holders), info.Shares, len(info.Queue), info.Places)
	}
	if first := info.Queue[0].Owner; first != "waiting:0" {
		t.Errorf("the first in line is %s", first)
	}
}

// TestLineIsSeen: Inspect lists the waiters in the order of arrival, with their modes; the hook tells each its position.
func TestLineIsSeen(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	waits := make(chan core.Wait, 100)
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithInstance("web-1:7"), core.WithHooks(core.Hooks{
		Wait: func(_ context.Context, w core.Wait) { waits <- w },
	}))
	holder := coretest.MustLock(t, locks.Write("name"))
	var done []<-chan error
	var owners []string
	for i, strategy := range []core.Strategy{locks.Read, locks.FairWrite, locks.Fair, locks.FairRead} {
		done = append(done, coretest.LockLater(strategy("name")))
		w := <-waits
		if w.Name != "name" || w.Position != i+1 || w.RetryAfter < coretest.Long-coretest.Within || w.Holder != holder.Owner() ||
			w.HolderInstance != "web-1:7" {
			t.Errorf("waiter %d: %+v", i+1, w)
		}
		owners = append(owners, w.Owner)
	}
	info, err := locks.Inspect(ctx, "name")
	if err != nil || info.Mode != core.ModeWrite || len(info.Holders) != 1 || info.Holders[0].Owner != holder.Owner() {
		t.Errorf("Inspect = %+v, %v", info, err)
	}
	want := []core.Waiter{
		{Owner: owners[0], Instance: "web-1:7", Mode: core.ModeRead},
		{Owner: owners[1], Instance: "web-1:7", Mode: core.ModeWrite},
		{Owner: owners[2], Instance: "web-1:7", Mode: core.ModeFair},
		{Owner: owners[3], Instance: "web-1:7", Mode: core.ModeRead},
	}
	if !slices.Equal(info.Queue, want) {
		t.Errorf("queue %+v, want %+v", info.Queue, want)
	}
	coretest.Unlock(t, holder)
	for _, waiting := range done {
		if err := coretest.Receive(t, waiting); err != nil {
			t.Error(err)
		}
	}
}

// TestHoldersAreSeen: Inspect lists every reader with its own time, count and token.
func TestHoldersAreSeen(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb)
	fair := coretest.MustLock(t, locks.Fair("fair"))
	if info, err := locks.Inspect(ctx, "fair"); err != nil || info.Mode != core.ModeFair ||
		len(info.Holders) != 1 || info.Holders[0].Token != fair.Token() || info.Holders[0].Granted.IsZero() {
		t.Errorf("Inspect = %+v, %v", info, err)
	}
	first := coretest.MustLock(t, locks.Read("name"), core.WithTTL(coretest.Long))
	again := coretest.MustLockWith(t, first.Context(), locks.Read("name"), core.WithTTL(10*time.Second))
	second := coretest.MustLock(t, locks.FairRead("name"), core.WithTTL(20*time.Second))
	info, err := locks.Inspect(ctx, "name")
	if err != nil || info.Mode != core.ModeRead || len(info.Holders) != 2 || info.TTL < coretest.Long-coretest.Within {
		t.Fatalf("Inspect = %+v, %v", info, err)
	}
	for _, h := range info.Holders {
		l, holds, ttl := first, 2, coretest.Long
		if h.Owner == second.Owner() {
			l, holds, ttl = second, 1, 20*time.Second
		}
		if h.Owner != l.Owner() || h.Holds != holds || h.Token != l.Token() || h.TTL > ttl || h.TTL < ttl-coretest.Within ||
			h.Granted.IsZero() {
			t.Errorf("holder %+v, want %d holds and token %d for %v", h, holds, l.Token(), ttl)
		}
	}
	coretest.Unlock(t, first)
	coretest.Unlock(t, again)
	coretest.Unlock(t, second)
	if info, err := locks.Inspect(ctx, "name"); err != nil || info.Mode != "" || len(info.Holders) != 0 {
		t.Errorf("Inspect = %+v, %v", info, err)
	}
}
