package redlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestRedlockTokensGrowWhateverMinorityFails makes one server's tokens greater than all others by an hour. The token
// of a grant in which it took part must be known to a majority, so the next grant exceeds it without that server.
func TestRedlockTokensGrowWhateverMinorityFails(t *testing.T) {
	t.Parallel()
	five := coretest.StartMasters(t, 5)
	r := five.Redlock(t)
	ahead := time.Now().Add(time.Hour).UnixMicro()
	servers := five.Servers
	for first := range servers {
		second := (first + 1) % len(servers)
		five.Looks[first].Set(context.Background(), "holdfast:token", ahead, time.Hour)
		var last int64
		testkit.Eventually(t, coretest.Within, "a grant in which the server that is ahead took part", func() bool {
			lease := coretest.MustLock(t, r.Mutex("name"))
			last = lease.Token()
			coretest.Unlock(t, lease)
			return last > ahead
		})
		servers[first].Pause()
		servers[second].Pause()
		lease := coretest.MustLock(t, r.Mutex("name"))
		if lease.Token() <= last {
			t.Errorf("token %d after %d, without servers %d and %d", lease.Token(), last, first, second)
		}
		ahead = lease.Token() + time.Hour.Microseconds()
		coretest.Unlock(t, lease)
		servers[first].Resume()
		servers[second].Resume()
	}
}

// TestRedlockTokenIsTheSameEverywhere looks at what the servers say of a lease, one of whose grants came late.
func TestRedlockTokenIsTheSameEverywhere(t *testing.T) {
	t.Parallel()
	five := coretest.StartMasters(t, 5)
	r := five.Redlock(t)
	five.Servers[4].Pause()
	lease := coretest.MustLock(t, r.Mutex("name"), core.WithOwner("owner"))
	five.Servers[4].Resume()
	five.AwaitHolders(t, "lock:name", 5)
	for _, rdb := range five.Looks {
		testkit.Eventually(t, coretest.Within, "the token to be agreed on", func() bool {
			token, _ := rdb.HGet(context.Background(), "lock:name", "token").Int64()
			return token == lease.Token()
		})
	}
	again := coretest.MustLock(t, five.Redlock(t).Mutex("name"), core.WithOwner("owner"))
	if again.Token() != lease.Token() {
		t.Errorf("token %d on re-entry by another process, want %d", again.Token(), lease.Token())
	}
	coretest.Unlock(t, again)
	coretest.Unlock(t, lease)
}

// TestRedlockValidity compares the lease's end with what the servers give it: a majority must keep it for longer.
func TestRedlockValidity(t *testing.T) {
	t.Parallel()
	five := coretest.StartMasters(t, 5)
	r := five.Redlock(t)
	for range 20 {
		lease := coretest.MustLock(t, r.Mutex("name"), core.WithFixedTTL(10*time.Second))
		left := time.Until(lease.ValidUntil())
		longer := 0
		for _, rdb := range five.Looks {
			if rdb.PTTL(context.Background(), "lock:name").Val() >= time.Until(lease.ValidUntil()) {
				longer++
			}
		}
		if longer < 3 || left > 10*time.Second-102*time.Millisecond {
			t.Errorf("valid for %v; %d servers keep the lock for longer", left, longer)
		}
		coretest.Unlock(t, lease)
	}
}

// TestRedlockGrantWithLittleTimeLeft: a majority answers when the lease is nearly over. It is not returned.
func TestRedlockGrantWithLittleTimeLeft(t *testing.T) {
	t.Parallel()
	const ttl = 6 * time.Second // on a busy machine even the second request takes a second or two
	three := coretest.StartMasters(t, 3)
	nodes := three.Clients()
	for i, s := range three.Servers {
		relay := s.Relay()
		nodes[i] = relay.Client(func(o *redis.Options) { o.ReadTimeout = coretest.Within })
		coretest.Nth(relay, "lock:name", 1, func() {
			relay.Hold(testkit.ToClient)
			time.AfterFunc(ttl-ttl/20, relay.Deliver)
		})
	}
	var end core.AcquireEnd
	r := coretest.NewRedlock(t, nodes, core.WithNodeTimeout(coretest.Within), core.WithHooks(core.Hooks{
		AcquireEnd: func(_ context.Context, e core.AcquireEnd) { end = e },
	}))
	coretest.Unlock(t, coretest.MustLock(t, r.Mutex("warm")))
	lease := coretest.MustLock(t, r.Mutex("name"), core.WithFixedTTL(ttl))
	if end.Asked < 2 {
		t.Errorf("returned with %v left", time.Until(lease.ValidUntil()))
	}
}

// TestRedlockReentryKeepsTheToken enters a lock again after two servers that did not have the hold when it was granted
// are back: empty, so that they grant it anew, or with a grant that came too late to be given the token.
func TestRedlockReentryKeepsTheToken(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, comeBack := range map[string]func(s *testkit.Server, owner string){
		"empty": func(s *testkit.Server, _ string) { s.Restart() },
		"late": func(s *testkit.Server, owner string) {
			s.Restart()
			late := coretest.MustLock(t, coretest.NewClient(t, s.Client(), core.WithTTL(coretest.Long)).Mutex("name"), core.WithOwner(owner))
			t.Logf("granted late with %d", late.Token())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			five := coretest.StartMasters(t, 5)
			r := five.Redlock(t, core.WithTTL(coretest.Long))
			for _, s := range five.Servers[:2] {
				s.Kill()
			}
			outer := coretest.MustLock(t, r.Mutex("name"), core.WithFixedTTL(10*time.Minute)) // no renewal notices what is forgotten below
			for _, s := range five.Servers[:2] {
				comeBack(s, outer.Owner())
			}
			for range 10 {
				inner := coretest.MustLockWith(t, outer.Context(), r.Mutex("name"))
				if inner.Token() != outer.Token() {
					t.Errorf("token %d on re-entry, want %d", inner.Token(), outer.Token())
				}
				coretest.Unlock(t, inner)
			}
			for _, rdb := range five.Looks[2:] { // another client may have been in since
				rdb.FlushAll(ctx)
			}
			if next := coretest.MustLockWith(t, outer.Context(), r.Mutex("name")); next.Token() <= outer.Token() {
				t.Errorf("token %d after a majority has forgotten %d", next.Token(), outer.Token())
			}
		})
	}
}

// TestRedlockTokenIsWrittenToAMajority cuts two of three servers off after they have granted the lock: without them,
// the token is remembered by one server only, so no client may get to see it.
func TestRedlockTokenIsWrittenToAMajority(t *testing.T) {
	t.Parallel()
	three := coretest.StartMasters(t, 3)
	nodes := three.Clients()
	healed := make(chan struct{})
	for i, s := range three.Servers[:2] {
		relay := s.Relay()
		nodes[i] = relay.Client()
		coretest.Nth(relay, "lock:name", 2, func() {
			relay.Drop(testkit.Both)
			<-healed
		})
		t.Cleanup(relay.Heal)
	}
	defer close(healed)
	r := coretest.NewRedlock(t, nodes, core.WithNodeTimeout(time.Second))
	coretest.Unlock(t, coretest.MustLock(t, r.Mutex("warm")))
	lease, err := r.Mutex("name").TryLock(context.Background(), core.WithMinHold(coretest.Long))
	if lease != nil {
		t.Errorf("token %d was returned", lease.Token())
	}
	coretest.WantErr(t, err, core.ErrUnavailable)
	testkit.Eventually(t, coretest.Within, "the third server's grant to be taken back", func() bool {
		return three.Looks[2].Exists(context.Background(), "lock:name").Val() == 0
	})
}

// TestRedlockReentryKeepsItsToken: two servers have forgotten the lock, and one of those that know it does not answer the
// re-entry at first. The other two are too few to say that the owner has been in all the time, but all know better.
func TestRedlockReentryKeepsItsToken(t *testing.T) {
	t.Parallel()
	five := coretest.StartMasters(t, 5)
	nodes := five.Clients()
	relay := five.Servers[0].Relay()
	nodes[0] = relay.Client()
	r := coretest.NewRedlock(t, nodes, core.WithNodeTimeout(time.Second))
	coretest.Unlock(t, coretest.MustLock(t, r.Mutex("warm")))
	lease := five.LockCommitted(t, r.Mutex("name"))
	for _, rdb := range five.Looks[3:] {
		if n := rdb.Del(context.Background(), "lock:name").Val(); n != 1 {
			t.Fatalf("%d keys deleted", n)
		}
	}
	relay.LoseReplies("lock:name", 1, testkit.Closed)
	again := coretest.MustLockWith(t, lease.Context(), r.Mutex("name"), core.WithFixedTTL(coretest.Long))
	if again.Token() != lease.Token() {
		t.Errorf("token %d after re-entry, want %d", again.Token(), lease.Token())
	}
	if n := relay.LostReplies(); n != 1 {
		t.Errorf("%d replies lost, want 1", n)
	}
	coretest.Unlock(t, again)
	coretest.Unlock(t, lease)
}

func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
