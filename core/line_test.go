package core_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// onlyQueued returns the strategies whose waiters stand in a line.
func onlyQueued(c *core.Client) map[string]core.Strategy {
	all := strategies(c)
	delete(all, "Mutex")
	return all
}

// TestLineIsSeen: Inspect lists who waits in the order of arrival, and how; the hook tells everybody its position.
func TestLineIsSeen(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := redistest.Start(t).Client()
	waits := make(chan core.Wait, 8)
	locks := newClient(t, rdb, core.WithTTL(long), core.WithHooks(core.Hooks{
		Wait: func(_ context.Context, w core.Wait) { waits <- w },
	}))
	holder := mustLock(t, locks.Write("name"))
	var done []<-chan error
	var owners []string
	for i, strategy := range []core.Strategy{locks.Read, locks.FairWrite, locks.Fair, locks.FairRead} {
		done = append(done, lockLater(strategy("name")))
		w := <-waits
		if w.Name != "name" || w.Position != i+1 || w.RetryAfter < long-within {
			t.Errorf("waiter %d: %+v", i+1, w)
		}
		owners = append(owners, w.Owner)
	}
	info, err := locks.Inspect(ctx, "name")
	if err != nil || info.Mode != core.ModeWrite || len(info.Holders) != 1 || info.Holders[0].Owner != holder.Owner() {
		t.Errorf("Inspect = %+v, %v", info, err)
	}
	want := []core.Waiter{
		{Owner: owners[0], Mode: core.ModeRead},
		{Owner: owners[1], Mode: core.ModeWrite},
		{Owner: owners[2], Mode: core.ModeFair},
		{Owner: owners[3], Mode: core.ModeRead},
	}
	if !slices.Equal(info.Queue, want) {
		t.Errorf("queue %+v, want %+v", info.Queue, want)
	}
	unlock(t, holder)
	for _, waiting := range done {
		if err := receive(t, waiting); err != nil {
			t.Error(err)
		}
	}
}

// TestHoldersAreSeen: Inspect lists every reader with its own time, count and token.
func TestHoldersAreSeen(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := redistest.Start(t).Client()
	locks := newClient(t, rdb)
	fair := mustLock(t, locks.Fair("fair"))
	if info, err := locks.Inspect(ctx, "fair"); err != nil || info.Mode != core.ModeFair ||
		len(info.Holders) != 1 || info.Holders[0].Token != fair.Token() || info.Holders[0].Granted.IsZero() {
		t.Errorf("Inspect = %+v, %v", info, err)
	}
	first := mustLock(t, locks.Read("name"), core.WithTTL(long))
	again := mustLockWith(t, first.Context(), locks.Read("name"), core.WithTTL(10*time.Second))
	second := mustLock(t, locks.FairRead("name"), core.WithTTL(20*time.Second))
	info, err := locks.Inspect(ctx, "name")
	if err != nil || info.Mode != core.ModeRead || len(info.Holders) != 2 || info.TTL < long-within {
		t.Fatalf("Inspect = %+v, %v", info, err)
	}
	for _, h := range info.Holders {
		l, holds, ttl := first, 2, long
		if h.Owner == second.Owner() {
			l, holds, ttl = second, 1, 20*time.Second
		}
		if h.Owner != l.Owner() || h.Holds != holds || h.Token != l.Token() || h.TTL > ttl || h.TTL < ttl-within ||
			h.Granted.IsZero() {
			t.Errorf("holder %+v, want %d holds and token %d for %v", h, holds, l.Token(), ttl)
		}
	}
	unlock(t, first)
	unlock(t, again)
	unlock(t, second)
	if info, err := locks.Inspect(ctx, "name"); err != nil || info.Mode != "" || len(info.Holders) != 0 {
		t.Errorf("Inspect = %+v, %v", info, err)
	}
}

// TestHalfALine takes one command after another from the user, and lets it lock, enter again, wait, give up and
// unlock as far as it can. Whatever the scripts could still do, nothing may be left that has no expiry, and the lock
// must become free.
func TestHalfALine(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rdb := server.Client()
	for _, command := range []string{
		"time", "exists", "pttl", "hmget", "hget", "hset", "hdel", "hexists", "hincrby", "get", "set", "unlink",
		"zadd", "zrem", "zrange", "zrevrange", "zrangebyscore", "zscore", "zcount", "pexpire", "pexpireat", "publish",
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			half := newClient(t, restricted(t, server, "+@all", "-"+command),
				core.WithTTL(time.Second), core.WithLogger(nil))
			whole := newClient(t, rdb, core.WithTTL(long))
			for kind, strategy := range onlyQueued(half) {
				name := kind + " without " + command
				lockByHalves(strategy(name))
				lease := mustLock(t, onlyQueued(whole)[kind](name)) // after the TTL, if not before
				lockByHalves(strategy(name))
				unlock(t, lease)
			}
			for _, key := range rdb.Keys(context.Background(), "*without "+command+"*").Val() {
				if ttl := rdb.PTTL(context.Background(), key).Val(); ttl == -1 {
					t.Errorf("key %q has no expiry", key)
				}
			}
		})
	}
}

// lockByHalves does what the user may.
func lockByHalves(l core.Locker) {
	ctx := context.Background()
	outer, err := l.Lock(ctx, core.WithWait(10*time.Millisecond))
	if err != nil {
		return
	}
	if inner, err := l.TryLock(outer.Context()); err == nil {
		_ = inner.Unlock(ctx)
	}
	_ = outer.Unlock(ctx)
}

// TestOwnerIsLetInTwice: of two who wait under one owner's name, the second does not wait for the first to unlock, nor
// for those between them.
func TestOwnerIsLetInTwice(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := redistest.Start(t).Client()
	locks, second := newClient(t, rdb, core.WithTTL(long)), newClient(t, rdb, core.WithTTL(long))
	held := make(map[string]*core.Lease)
	waiting := make(map[string][]<-chan *core.Lease)
	var between []<-chan error
	for kind, strategy := range onlyQueued(locks) {
		held[kind] = mustLock(t, locks.FairWrite(kind))
		waiting[kind] = append(waiting[kind], leaseLater(t, strategy(kind), core.WithOwner("owner")))
		awaitQueue(t, locks, kind, 1)
		between = append(between, lockLater(locks.Write(kind)))
		awaitQueue(t, locks, kind, 2)
		waiting[kind] = append(waiting[kind], leaseLater(t, onlyQueued(second)[kind](kind), core.WithOwner("owner")))
		awaitQueue(t, locks, kind, 3)
	}
	for _, lease := range held {
		unlock(t, lease)
	}
	for kind := range held {
		first, again := awaitLease(t, waiting[kind][0]), awaitLease(t, waiting[kind][1])
		if first.Token() != again.Token() {
			t.Errorf("%s: tokens %d and %d", kind, first.Token(), again.Token())
		}
		unlock(t, first)
		unlock(t, again)
	}
	for _, done := range between {
		if err := receive(t, done); err != nil {
			t.Error(err)
		}
	}

	unlocked := mustLock(t, locks.Fair("mutex"))
	entering := leaseLater(t, second.Fair("mutex"), core.WithOwner("owner"))
	awaitQueue(t, locks, "mutex", 1)
	_, err := rdb.TxPipelined(ctx, func(tx redis.Pipeliner) error { // a Mutex is quicker
		tx.Del(ctx, "lock:mutex")
		tx.HSet(ctx, "lock:mutex", "owner", 1)
		tx.PExpire(ctx, "lock:mutex", long)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	unlock(t, awaitLease(t, entering))
	wantErr(t, unlocked.Unlock(ctx), core.ErrNotHeld)
}

// TestFullServerAndLine: a server without memory refuses places and grants, but renews, releases, and grants to those
// who were in line before.
func TestFullServerAndLine(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	rdb := server.Client()
	locks := newClient(t, rdb, core.WithTTL(3*time.Second))
	var leases []*core.Lease
	var waiting []<-chan error
	for kind, strategy := range onlyQueued(locks) {
		leases = append(leases, mustLock(t, strategy(kind)))
		waiting = append(waiting, lockLater(locks.Fair(kind)))
		awaitQueue(t, locks, kind, 1)
	}
	leases = append(leases, mustLock(t, locks.Read("Reader"), core.WithTTL(long)))
	leases = append(leases, mustLock(t, locks.Read("Reader")))
	fillUp(rdb)
	for kind, strategy := range onlyQueued(locks) {
		_, err := strategy(kind + " anew").TryLock(ctx)
		if err == nil || !strings.Contains(err.Error(), "OOM") {
			t.Errorf("%s on a full server: %v", kind, err)
		}
	}
	awaitRenewed(t, leases, 5*time.Second) // and the places with them
	for _, l := range leases {
		unlock(t, l)
	}
	for _, done := range waiting {
		if err := receive(t, done); err != nil {
			t.Errorf("waiter: %v", err)
		}
	}
	if keys := rdb.Keys(ctx, "lock:*").Val(); len(keys) != 0 {
		t.Errorf("left behind: %v", keys)
	}
}

// TestFullServerReleases what is released with a minimum time left, or after the server's clock was set back.
func TestFullServerReleases(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := redistest.Start(t).Client()
	var leases []*core.Lease
	ahead := time.Now().Add(time.Hour).UnixMilli()
	for kind, strategy := range onlyQueued(newClient(t, rdb, core.WithTTL(long))) {
		leases = append(leases, mustLock(t, strategy(kind+" kept"), core.WithMinHold(2*time.Second)))
		lease := mustLock(t, strategy(kind))
		leases = append(leases, lease)
		rdb.PExpire(ctx, "lock:"+kind, time.Hour)
		if rdb.HExists(ctx, "lock:"+kind, "exclusive_until").Val() {
			rdb.HSet(ctx, "lock:"+kind, "exclusive_until", ahead)
			continue
		}
		rdb.ZAdd(ctx, "holdfast:share_expiries:{lock:"+kind+"}", redis.Z{Score: float64(ahead), Member: lease.Owner()})
		rdb.PExpire(ctx, "holdfast:share_expiries:{lock:"+kind+"}", time.Hour)
	}
	fillUp(rdb)
	for _, lease := range leases {
		unlock(t, lease)
	}
	redistest.Eventually(t, within, "all locks to be gone", func() bool {
		return len(rdb.Keys(ctx, "lock:*").Val()) == 0
	})
}

// TestClockSetBackInLine: after the server's clock was set back, expiries lie far in the future, as they do here. No
// crashed holder may block the name for that long, nor a crashed waiter.
func TestClockSetBackInLine(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := redistest.Start(t).Client()
	locks := newClient(t, rdb)
	ahead := time.Now().Add(time.Hour).UnixMilli()
	mustLock(t, locks.Fair("writer"), core.WithFixedTTL(time.Second))
	rdb.HSet(ctx, "lock:writer", "exclusive_until", ahead)
	rdb.PExpire(ctx, "lock:writer", time.Hour)
	reader := mustLock(t, locks.Read("reader"), core.WithFixedTTL(time.Second))
	id := strings.TrimPrefix(field(t, rdb.HKeys(ctx, "lock:reader").Val(), "share:"), "share:")
	rdb.ZAdd(ctx, "holdfast:share_expiries:{lock:reader}", redis.Z{Score: float64(ahead), Member: id})
	rdb.PExpire(ctx, "lock:reader", time.Hour)
	rdb.PExpire(ctx, "holdfast:share_expiries:{lock:reader}", time.Hour)

	mustLock(t, locks.Fair("line"), core.WithFixedTTL(time.Second))
	rdb.ZAdd(ctx, "holdfast:exclusive_queue:{lock:line}", redis.Z{Score: 1, Member: "dead:1"})
	rdb.HSet(ctx, "holdfast:waiters:{lock:line}", "dead:1", fmt.Sprint(ahead, " 1000 fair dead"))
	for _, name := range []string{"writer", "reader", "line"} {
		unlock(t, mustLock(t, locks.Fair(name)))
	}
	waitFor(t, reader.Done(), "the reader's lease to end")
}

// TestClockSetBackKeepsTheOrder: who comes after the server's clock was set back stands behind those who came before.
func TestClockSetBackKeepsTheOrder(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := redistest.Start(t).Client()
	holder := mustLock(t, newClient(t, rdb).Fair("name"), core.WithTTL(long))
	inLine := func(n int64) {
		redistest.Eventually(t, within, "the waiters to be in line", func() bool {
			return rdb.ZCard(ctx, "holdfast:exclusive_queue:{lock:name}").Val() == n
		})
	}
	order := make(chan string, 2)
	wait := func(who string) {
		lock := newClient(t, rdb).Fair("name")
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
	unlock(t, holder)
	for _, want := range []string{"first", "second"} {
		select {
		case got := <-order:
			if got != want {
				t.Fatalf("%s was let in instead of the %s", got, want)
			}
		case <-time.After(within):
			t.Fatal("nobody is let in")
		}
	}
}
