package release_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestAcquireAfterItsRelease: the release of a request that was given up overtakes it.
func TestAcquireAfterItsRelease(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	server := testkit.Start(t)
	rdb, relay := server.Client(), server.Relay()
	locks := coretest.NewClient(t, relay.Client(), core.WithTTL(coretest.Long))
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("name")))
	before := len(rdb.Keys(ctx, "holdfast:released:*").Val())
	pass, passed := make(chan struct{}), make(chan struct{})
	goOn := sync.OnceFunc(func() { close(pass) })
	t.Cleanup(goOn) // the relay could not be closed otherwise
	coretest.Nth(relay, "lock:name", 1, func() { cancel(); <-pass; close(passed) })
	_, err := locks.Mutex("name").Lock(ctx)
	coretest.WantErr(t, err, core.ErrNotAcquired)
	testkit.Eventually(t, coretest.Within, "the release to be executed", func() bool {
		return len(rdb.Keys(context.Background(), "holdfast:released:*").Val()) > before
	})
	calls := server.CommandStats()["evalsha"].Calls
	goOn()
	coretest.WaitFor(t, passed, "the request to go on")
	testkit.Eventually(t, coretest.Within, "the request to be executed", func() bool {
		return server.CommandStats()["evalsha"].Calls > calls
	})
	if rdb.Exists(context.Background(), "lock:name").Val() != 0 {
		t.Error("granted to a caller that had given up")
	}
}

// TestLateGrant: a lease that is over when its grant arrives is not handed out, but asked for anew.
func TestLateGrant(t *testing.T) {
	t.Parallel()
	relay := testkit.Start(t).Relay()
	var end core.AcquireEnd
	locks := coretest.NewClient(t, relay.Client(), core.WithHooks(core.Hooks{
		AcquireEnd: func(_ context.Context, e core.AcquireEnd) { end = e },
	}))
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("warm")))
	coretest.Nth(relay, "lock:name", 1, func() {
		relay.Hold(testkit.ToClient)
		time.AfterFunc(1500*time.Millisecond, relay.Deliver)
	})
	_, err := locks.Mutex("name").Lock(context.Background(), core.WithFixedTTL(time.Second))
	if err != nil || end.Asked < 2 {
		t.Errorf("%v after %d requests", err, end.Asked)
	}
}

// TestRefusedHoldGetsANewID: a request whose hold id is refused for good continues with a new id.
func TestRefusedHoldGetsANewID(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithHooks(core.Hooks{
		AcquireStart: func(ctx context.Context, s core.AcquireStart) context.Context {
			rdb.Set(ctx, "holdfast:released:{lock:name}:"+s.Owner, 0, coretest.Long)
			return ctx
		},
	}))
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("name"), core.WithWait(coretest.Within)))
}

// TestUnknownOutcomesAreRemembered: replies get lost on connections that time out, then the server refuses: what
// the first request was granted is given back all the same.
func TestUnknownOutcomesAreRemembered(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb, relay := server.Client(), server.Relay()
	locks := coretest.NewClient(t, relay.Client(func(o *redis.Options) { o.ReadTimeout = 300 * time.Millisecond }),
		core.WithTTL(coretest.Long))
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("warm")))

	relay.LoseReplies("lock:silent", 1000, testkit.Silent) // all that TryLock sends, however often
	_, err := locks.Mutex("silent").TryLock(ctx)
	coretest.WantErr(t, err, core.ErrUnavailable)
	if relay.LostReplies() == 0 {
		t.Error("no reply was lost: the test has tested nothing")
	}
	relay.Heal()
	coretest.Gone(t, rdb, "lock:silent")

	relay.LoseReplies("lock:refused", 1, testkit.Closed)
	refusing := make(chan struct{})
	coretest.Nth(relay, "lock:refused", 2, func() {
		defer close(refusing)
		rdb.ConfigSet(ctx, "min-replicas-to-write", "1")
	})
	_, err = locks.Mutex("refused").TryLock(ctx)
	coretest.WantErr(t, err, core.ErrUnavailable)
	coretest.WaitFor(t, refusing, "the server to refuse") // which may take longer than the call does
	if rdb.Exists(ctx, "lock:refused").Val() == 0 {
		t.Error("nothing was granted: the test has tested nothing")
	}
	rdb.ConfigSet(ctx, "min-replicas-to-write", "0")
	coretest.Gone(t, rdb, "lock:refused")
}

// TestUnconfirmedReleaseIsFinished: Unlock gives up, the release does not.
func TestUnconfirmedReleaseIsFinished(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	lease := coretest.MustLock(t, locks.Mutex("name"))
	rdb.ConfigSet(ctx, "min-replicas-to-write", "1")
	coretest.WantErr(t, lease.Unlock(ctx), core.ErrUnavailable)
	rdb.ConfigSet(ctx, "min-replicas-to-write", "0")
	coretest.Gone(t, rdb, "lock:name")
}

// TestExpiredHoldIsTakenOut: a lease that ended without a reply may still be in Redis.
func TestExpiredHoldIsTakenOut(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	lease := coretest.MustLock(t, coretest.NewClient(t, rdb).Mutex("name"), core.WithFixedTTL(time.Second))
	rdb.PExpire(ctx, "lock:name", coretest.Long) // as a renewal without an answer leaves it
	coretest.WaitFor(t, lease.Done(), "the lease to end")
	coretest.Gone(t, rdb, "lock:name")
}

// TestReleaseOutlivesMissingRights: a release that Redis refuses is tried again until it is allowed.
func TestReleaseOutlivesMissingRights(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	locks := coretest.NewClient(t, coretest.Restricted(t, server, "+@all"))
	lease := coretest.MustLock(t, locks.Mutex("name"), core.WithTTL(coretest.Long))
	rdb := server.Client()
	rdb.Do(ctx, "ACL", "SETUSER", t.Name(), "-del")
	if err := lease.Unlock(ctx); err == nil {
		t.Error("a refused release was reported as done")
	}
	rdb.Do(ctx, "ACL", "SETUSER", t.Name(), "+del")
	coretest.Unlock(t, coretest.MustLock(t, coretest.NewClient(t, rdb).Mutex("name")))
}

// TestReleaseOutlivesAnOutage: the release of an inner hold is not confirmed during an outage that is longer than
// the inner TTL. The outer hold keeps the lock in Redis meanwhile, so the inner one must still be taken out.
func TestReleaseOutlivesAnOutage(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	relay := server.Relay()
	locks := coretest.NewClient(t, relay.Client(func(o *redis.Options) { o.ReadTimeout = time.Second }))
	outer := coretest.MustLock(t, locks.Mutex("name"), core.WithFixedTTL(coretest.Long))
	inner := coretest.MustLockWith(t, outer.Context(), locks.Mutex("name"), core.WithTTL(time.Second))
	relay.Drop(testkit.ToServer)
	ended, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	coretest.WantErr(t, inner.Unlock(ended), core.ErrUnavailable)
	began := time.Now()
	testkit.Eventually(t, coretest.Within, "the inner TTL", func() bool { return time.Since(began) > 2*time.Second })
	relay.Heal()
	rdb := server.Client()
	testkit.Eventually(t, coretest.Within, "the inner hold to be gone", func() bool {
		return rdb.HGet(ctx, "lock:name", outer.Owner()).Val() == "1"
	})
	coretest.Unlock(t, outer)
	coretest.Unlock(t, coretest.MustLock(t, coretest.NewClient(t, rdb).Mutex("name")))
}

// TestGivenUpHoldsAreRemembered for much longer than others: their requests may still be on the way.
func TestGivenUpHoldsAreRemembered(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	relay := server.Relay()
	locks := coretest.NewClient(t, relay.Client())
	rdb := server.Client()
	coretest.MustLock(t, coretest.NewClient(t, rdb).Mutex("name")) // so the release of the other request finds nothing
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("warm")))
	relay.Hold(testkit.ToClient)
	ended, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err := locks.Mutex("name").Lock(ended)
	coretest.WantErr(t, err, context.DeadlineExceeded)
	relay.Heal()
	testkit.Eventually(t, coretest.Within, "the hold to be remembered", func() bool {
		for _, key := range rdb.Keys(ctx, "holdfast:released*").Val() {
			if rdb.PTTL(ctx, key).Val() > 5*time.Minute {
				return true
			}
		}
		return false
	})
}

// TestDoWithUnconfirmedRelease: that is no error of Do.
func TestDoWithUnconfirmedRelease(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	err := coretest.NewClient(t, rdb).Mutex("name").Do(ctx, func(context.Context) error {
		return rdb.ConfigSet(ctx, "min-replicas-to-write", "1").Err()
	})
	if err != nil {
		t.Errorf("Do: %v", err)
	}
	rdb.ConfigSet(ctx, "min-replicas-to-write", "0")
	coretest.Gone(t, rdb, "lock:name")
}
