package redlock_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestRedlockRestoresForgottenHolds has every server restart empty, one after the other while a lease lasts: each is
// given the holds again at a renewal, so the majority is never lost.
func TestRedlockRestoresForgottenHolds(t *testing.T) {
	t.Parallel()
	five := coretest.StartMasters(t, 5)
	a, b := five.Redlock(t), five.Redlock(t)
	outer := coretest.MustLock(t, a.Mutex("name"), core.WithTTL(6*time.Second))
	inner := coretest.MustLockWith(t, outer.Context(), a.Mutex("name"), core.WithTTL(6*time.Second))
	for i, s := range five.Servers {
		s.Restart()
		five.AwaitHolders(t, "lock:name", 5)
		testkit.Eventually(t, coretest.Within, "both holds to be there again", func() bool {
			return five.Looks[i].HGet(context.Background(), "lock:name", outer.Owner()).Val() == "2"
		})
	}
	for _, rdb := range five.Looks {
		if token, err := rdb.HGet(context.Background(), "lock:name", "token").Int64(); token != outer.Token() {
			t.Errorf("token %d on a server that has forgotten %d: %v", token, outer.Token(), err)
		}
	}
	if _, err := b.Mutex("name").TryLock(context.Background()); !errors.Is(err, core.ErrNotAcquired) {
		t.Errorf("a second holder: %v", err)
	}
	coretest.Unlock(t, inner)
	coretest.Unlock(t, outer)
	five.AwaitHolders(t, "lock:name", 0)
}

// TestRedlockRestoresHoldsAsTheyWere has every server restart empty, one after the other, while a lease lasts that was
// extended, raised to a greater token by a Multi, and that has a minimum time: nothing of that may be forgotten.
func TestRedlockRestoresHoldsAsTheyWere(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	five := coretest.StartMasters(t, 5)
	r := five.Redlock(t)
	single := testkit.Start(t).Client()
	ahead := time.Now().Add(time.Hour).UnixMicro()
	single.Set(ctx, "holdfast:token", ahead, time.Hour)
	locks := core.Multi(r.Mutex("name", core.WithMinHold(coretest.Long)), coretest.NewClient(t, single).Mutex("one"))
	outer := coretest.MustLock(t, r.Mutex("name"), core.WithTTL(6*time.Second))
	lease := coretest.MustLockWith(t, outer.Context(), locks, core.WithTTL(6*time.Second))
	if err := lease.Extend(ctx, 2*coretest.Long); err != nil {
		t.Fatalf("extend: %v", err)
	}
	for i, s := range five.Servers {
		s.Restart()
		testkit.Eventually(t, coretest.Within, "both holds to be there again", func() bool {
			return five.Looks[i].HGet(ctx, "lock:name", outer.Owner()).Val() == "2"
		})
	}
	kept, until := 0, lease.ValidUntil()
	for _, rdb := range five.Looks {
		if token, err := rdb.HGet(ctx, "lock:name", "token").Int64(); token != lease.Token() {
			t.Errorf("token %d on a server that has forgotten %d: %v", token, lease.Token(), err)
		}
		if rdb.PTTL(ctx, "lock:name").Val() >= time.Until(until) {
			kept++
		}
	}
	if kept < 3 {
		t.Errorf("valid until %v, and only %d servers keep it for so long", until, kept)
	}
	coretest.Unlock(t, lease)
	coretest.Unlock(t, outer)
	if n := five.Holders("lock:name"); n < 3 {
		t.Errorf("only %d servers keep it for the minimum time", n)
	}
	for _, rdb := range five.Looks {
		rdb.Del(ctx, "lock:name")
	}
	if next := coretest.MustLock(t, r.Mutex("name")); next.Token() <= lease.Token() {
		t.Errorf("token %d after %d", next.Token(), lease.Token())
	}
}

// TestRedlockLosesALeaseWithTheMajority flushes three servers: another client could have had the lock since, so the
// lease is over, although all servers would give it back.
func TestRedlockLosesALeaseWithTheMajority(t *testing.T) {
	t.Parallel()
	five := coretest.StartMasters(t, 5)
	r := five.Redlock(t)
	lease := coretest.MustLock(t, r.Mutex("name"), core.WithTTL(24*time.Second)) // renewed after all are flushed
	five.AwaitHolders(t, "lock:name", 5)                                         // no request for it arrives after the flush
	var flushed sync.WaitGroup
	for _, rdb := range five.Looks[2:] {
		flushed.Go(func() { rdb.FlushAll(context.Background()) })
	}
	flushed.Wait()
	coretest.WaitFor(t, lease.Done(), "the loss to be noticed")
	coretest.WantErr(t, context.Cause(lease.Context()), core.ErrLeaseLost)
	coretest.WantErr(t, lease.Unlock(context.Background()), core.ErrNotHeld)
	five.AwaitHolders(t, "lock:name", 0)
	if next := coretest.MustLock(t, r.Mutex("name")); next.Token() <= lease.Token() {
		t.Errorf("token %d after %d", next.Token(), lease.Token())
	}
}

// TestRedlockRestartDelay restarts three of five servers, which come back empty, while a lease lasts. Without the delay
// they would grant the lock at once; with it, no client gets it before the lease is over.
func TestRedlockRestartDelay(t *testing.T) {
	t.Parallel()
	five := coretest.StartMasters(t, 5)
	const ttl = 2 * time.Second
	for _, rdb := range five.Looks {
		testkit.Eventually(t, coretest.Within, "the servers to be up for long enough", func() bool {
			up := rdb.InfoMap(context.Background(), "server").Val()["Server"]["uptime_in_seconds"]
			seconds, _ := strconv.Atoi(up)
			return seconds >= 3 // a second more than the delay, because it is cut to whole ones
		})
	}
	short, delay := core.WithTTL(ttl), core.WithRestartDelay(ttl)
	holder, other, hasty := five.Redlock(t, short, delay), five.Redlock(t, short, delay), five.Redlock(t)
	_ = coretest.MustLock(t, hasty.Mutex("control"), core.WithFixedTTL(coretest.Long))
	five.AwaitHolders(t, "lock:control", 5)
	lease := coretest.MustLock(t, holder.Mutex("name"), core.WithFixedTTL(ttl))
	testkit.Eventually(t, coretest.Within, "all servers to hold the lock, or its end", func() bool {
		held := int64(0)
		for _, rdb := range five.Looks {
			held += rdb.Exists(context.Background(), "lock:name").Val()
		}
		return held == 5 || lease.Context().Err() != nil
	})
	if lease.Context().Err() != nil {
		t.Skip("the machine is too slow for this")
	}
	for _, s := range five.Servers[2:] {
		s.Restart()
	}
	_ = coretest.MustLock(t, hasty.Mutex("control")) // granted twice
	if early, err := other.Mutex("name").TryLock(context.Background()); err == nil {
		if lease.Context().Err() == nil {
			t.Error("servers that have forgotten the lock granted it")
		}
		coretest.Unlock(t, early) // on a slow machine the delay is over
	}
	next := coretest.MustLock(t, other.Mutex("name"))
	if lease.Context().Err() == nil {
		t.Error("granted while the lease lasted")
	}
	if next.Token() <= lease.Token() {
		t.Errorf("token %d after %d", next.Token(), lease.Token())
	}
}

// TestRedlockRestartDelayIsNoShorter restarts all servers in the second half of a second of the wall clock. A server counts
// its uptime from the beginning of that second, so by its count the delay ends too early.
func TestRedlockRestartDelayIsNoShorter(t *testing.T) {
	t.Parallel()
	const delay = time.Second
	three := coretest.StartMasters(t, 3)
	r := three.Redlock(t, core.WithTTL(delay), core.WithRestartDelay(delay))
	half := time.Now().Truncate(time.Second).Add(1500 * time.Millisecond)
	time.Sleep(time.Until(half))
	began := time.Now()
	for _, s := range three.Servers {
		s.Restart()
	}
	lease := coretest.MustLock(t, r.Mutex("name"))
	if waited := time.Since(began); waited < delay {
		t.Errorf("granted %v after the servers restarted, want at least %v", waited, delay)
	}
	coretest.Unlock(t, lease)
}

// TestRedlockReleasesOnRecoveredServers unlocks while two servers are frozen, and takes a lock that these get to
// hear of late. When they are back, nothing is held there.
func TestRedlockReleasesOnRecoveredServers(t *testing.T) {
	t.Parallel()
	five := coretest.StartMasters(t, 5)
	r := five.Redlock(t, core.WithNodeTimeout(time.Second))
	early := coretest.MustLock(t, r.Mutex("early"), core.WithTTL(coretest.Long))
	five.AwaitHolders(t, "lock:early", 5)
	for _, s := range five.Servers[:2] {
		s.Pause()
	}
	coretest.Unlock(t, early)
	late := coretest.MustLock(t, r.Mutex("late"), core.WithTTL(coretest.Long))
	coretest.Unlock(t, late)
	if _, err := r.Mutex("given up").TryLock(cancelled()); err == nil {
		t.Error("locked with an ended context")
	}
	for _, s := range five.Servers[:2] {
		s.Resume()
	}
	for _, key := range []string{"lock:early", "lock:late", "lock:given up"} {
		five.AwaitHolders(t, key, 0)
	}
}

// TestRedlockReleasesWhatWasExtended unlocks a lease that was extended while a server is down that knows it when it is
// back, after the lease's TTL, and not before what it was extended by.
func TestRedlockReleasesWhatWasExtended(t *testing.T) {
	t.Parallel()
	three := coretest.StartMasters(t, 3, testkit.AOF())
	r := three.Redlock(t)
	lease := coretest.MustLock(t, r.Mutex("name"), core.WithFixedTTL(5*time.Second))
	three.AwaitHolders(t, "lock:name", 3)
	if err := lease.Extend(context.Background(), coretest.Long); err != nil {
		t.Fatalf("extend: %v", err)
	}
	testkit.Eventually(t, coretest.Within, "all servers to extend it", func() bool {
		return three.Looks[0].PTTL(context.Background(), "lock:name").Val() > coretest.Long/2
	})
	three.Servers[0].Kill()
	coretest.Unlock(t, lease)
	longer := coretest.MustLock(t, r.Mutex("longer"), core.WithFixedTTL(6*time.Second))
	coretest.WaitFor(t, longer.Done(), "the first lease's TTL to be over")
	three.Servers[0].Restart()
	three.AwaitHolders(t, "lock:name", 0)
}

// TestRedlockRestoresNothingOverOthers gives two servers to another owner while a lease lasts: they must not be given
// the hold again.
func TestRedlockRestoresNothingOverOthers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	five := coretest.StartMasters(t, 5)
	lease := coretest.MustLock(t, five.Redlock(t).Mutex("name"), core.WithTTL(3*time.Second))
	five.AwaitHolders(t, "lock:name", 5)
	var others []*core.Lease
	for _, rdb := range five.Looks[:2] {
		other := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long)).Mutex("name")
		testkit.Eventually(t, coretest.Within, "the lock, before it is restored", func() bool {
			rdb.Del(ctx, "lock:name")
			got, err := other.TryLock(ctx)
			if err == nil {
				others = append(others, got)
			}
			return err == nil
		})
	}
	for range 2 {
		coretest.AwaitRenewed(t, []*core.Lease{lease}, 3*time.Second)
	}
	for i, other := range others {
		state := five.Looks[i].HGetAll(ctx, "lock:name").Val()
		if state[lease.Owner()] != "" || state["token"] != strconv.FormatInt(other.Token(), 10) {
			t.Errorf("somebody else's lock is now %v", state)
		}
		coretest.Unlock(t, other)
	}
	coretest.Unlock(t, lease)
}

// TestRedlockGrantForgottenAtOnce has two of three servers forget a grant before they are given the token. Another owner
// may have had the lock since, so they do not count any more.
func TestRedlockGrantForgottenAtOnce(t *testing.T) {
	t.Parallel()
	three := coretest.StartMasters(t, 3)
	nodes := three.Clients()
	for i, s := range three.Servers[:2] {
		relay := s.Relay()
		nodes[i] = relay.Client()
		coretest.Nth(relay, "lock:name", 2, func() { three.Looks[i].Del(context.Background(), "lock:name") })
	}
	var end core.AcquireEnd
	r := coretest.NewRedlock(t, nodes, core.WithNodeTimeout(time.Second), core.WithHooks(core.Hooks{
		AcquireEnd: func(_ context.Context, e core.AcquireEnd) { end = e },
	}))
	warm := coretest.MustLock(t, r.Mutex("warm"))
	three.AwaitHolders(t, "lock:warm", 3) // so that no server has to be told the script of the request itself
	coretest.Unlock(t, warm)
	coretest.Unlock(t, coretest.MustLock(t, r.Mutex("name")))
	if end.Asked < 2 {
		t.Error("granted by servers that had forgotten it")
	}
}
