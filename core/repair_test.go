package core_test

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// TestReleaseOutlivesMissingRights: a release that Redis refuses is tried again until it is allowed.
func TestReleaseOutlivesMissingRights(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	locks := newClient(t, restricted(t, server, "+@all"))
	lease := mustLock(t, locks.Mutex("name"), core.WithTTL(long))
	rdb := server.Client()
	rdb.Do(ctx, "ACL", "SETUSER", t.Name(), "-del")
	if err := lease.Unlock(ctx); err == nil {
		t.Error("a refused release was reported as done")
	}
	rdb.Do(ctx, "ACL", "SETUSER", t.Name(), "+del")
	unlock(t, mustLock(t, newClient(t, rdb).Mutex("name")))
}

// TestReleaseOutlivesAnOutage: the release of an inner hold is not confirmed during an outage that is longer than
// the inner TTL. The outer hold keeps the lock in Redis meanwhile, so the inner one must still be taken out.
func TestReleaseOutlivesAnOutage(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	relay := server.Relay()
	locks := newClient(t, relay.Client(func(o *redis.Options) { o.ReadTimeout = 100 * time.Millisecond }))
	outer := mustLock(t, locks.Mutex("name"), core.WithFixedTTL(long))
	inner := mustLockWith(t, outer.Context(), locks.Mutex("name"), core.WithTTL(300*time.Millisecond))
	relay.Drop(redistest.ToServer)
	ended, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	wantErr(t, inner.Unlock(ended), core.ErrUnavailable)
	began := time.Now()
	redistest.Eventually(t, within, "the inner TTL", func() bool { return time.Since(began) > time.Second })
	relay.Heal()
	rdb := server.Client()
	redistest.Eventually(t, within, "the inner hold to be gone", func() bool {
		return rdb.HGet(ctx, "lock:name", outer.Owner()).Val() == "1"
	})
	unlock(t, outer)
	unlock(t, mustLock(t, newClient(t, rdb).Mutex("name")))
}

// TestGivenUpHoldsAreRemembered for much longer than others: their requests may still be on the way.
func TestGivenUpHoldsAreRemembered(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	relay := server.Relay()
	locks := newClient(t, relay.Client())
	unlock(t, mustLock(t, locks.Mutex("name")))
	relay.Hold(redistest.ToClient)
	ended, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err := locks.Mutex("name").Lock(ended)
	wantErr(t, err, context.DeadlineExceeded)
	relay.Heal()
	rdb := server.Client()
	redistest.Eventually(t, within, "the hold to be remembered", func() bool {
		for _, key := range rdb.Keys(ctx, "holdfast:released*").Val() {
			if rdb.PTTL(ctx, key).Val() > 5*time.Minute {
				return true
			}
		}
		return false
	})
}

// TestPanicInRedisHook: a hook of the go-redis client that panics on a goroutine of holdfast ends the call, not
// the process, and nothing stays locked.
func TestPanicInRedisHook(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rdb := server.Client()
	hook := &panicHook{}
	rdb.AddHook(hook)
	locks := newClient(t, rdb)
	hook.armed.Store(true)
	_, err := locks.Mutex("name").TryLock(context.Background())
	if err == nil || !strings.Contains(err.Error(), "panic") {
		t.Errorf("error %v does not tell of the panic", err)
	}
	hook.armed.Store(false)
	unlock(t, mustLock(t, locks.Mutex("name")))
	redistest.Eventually(t, within, "the first hold to be gone", func() bool {
		return server.Client().Exists(context.Background(), "lock:name").Val() == 0
	})
}

// panicHook panics after the command has run.
type panicHook struct{ armed atomic.Bool }

func (*panicHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (h *panicHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if h.armed.Load() {
			panic("hook")
		}
		return err
	}
}

func (h *panicHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if h.armed.Load() {
			panic("hook")
		}
		return err
	}
}

// TestRefusedSubscriptions: a user who may not subscribe waits by polling, and does not connect over and over.
func TestRefusedSubscriptions(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	holder := mustLock(t, newClient(t, server.Client()).Mutex("name"), core.WithTTL(long))
	log := &record{}
	locks := newClient(t, restricted(t, server, "+@all", "-subscribe"), core.WithLogger(textLogger(log)))
	waiting := lockLater(locks.Mutex("name"))
	redistest.Eventually(t, within, "the refusal to be logged", func() bool {
		return strings.Contains(log.String(), "does not let this user subscribe")
	})
	before := server.CommandStats()["subscribe"]
	looks := server.CommandStats()["evalsha"].Calls
	redistest.Eventually(t, within, "some looks at the lock", func() bool {
		return server.CommandStats()["evalsha"].Calls > looks+4
	})
	if tries := server.CommandStats()["subscribe"].Rejected - before.Rejected; tries > 4 {
		t.Errorf("%d subscriptions were tried meanwhile", tries)
	}
	unlock(t, holder)
	if err := receive(t, waiting); err != nil {
		t.Errorf("waiter: %v", err)
	}
}

// TestAdoptedLeaseIsNotCut: entering a Redisson client's hold under its owner's name leaves it its time.
func TestAdoptedLeaseIsNotCut(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := redistest.Start(t).Client()
	locks := newClient(t, rdb)
	java := "8b0f7e2d-0000-4000-8000-000000000001:42"
	rdb.HSet(ctx, "lock:name", java, 1)
	rdb.PExpire(ctx, "lock:name", 10*time.Minute)
	lease := mustLock(t, locks.Mutex("name"), core.WithOwner(java), core.WithTTL(time.Second))
	if _, err := newClient(t, rdb).Mutex("name").TryLock(ctx); err == nil {
		t.Error("another owner got in")
	}
	unlock(t, lease)
	if left := rdb.PTTL(ctx, "lock:name").Val(); left < 9*time.Minute {
		t.Errorf("Redisson's lease was cut to %v", left)
	}
}

// TestForceIsNotRepeatedOnASuccessor: replies to a forced unlock get lost; its repetition must spare who took the
// lock meanwhile.
func TestForceIsNotRepeatedOnASuccessor(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	relay := server.Relay()
	operator := newClient(t, relay.Client(func(o *redis.Options) { o.ReadTimeout = 500 * time.Millisecond }))
	_, _ = operator.ForceUnlock(ctx, "other")
	locks := newClient(t, server.Client())
	mustLock(t, locks.Mutex("name"), core.WithTTL(long))
	waiting := make(chan *core.Lease, 1)
	go func() { waiting <- mustLock(t, locks.Mutex("name"), core.WithTTL(long)) }()
	awaitListeners(t, locks, "name", 1)
	relay.LoseReplies("lock:name", 1, redistest.Silent)
	if forced, err := operator.ForceUnlock(ctx, "name"); !forced || err != nil {
		t.Errorf("ForceUnlock = %v, %v", forced, err)
	}
	if relay.LostReplies() == 0 {
		t.Error("no reply was lost")
	}
	successor := <-waiting
	if info, err := locks.Inspect(ctx, "name"); err != nil || len(info.Holders) != 1 ||
		info.Holders[0].Owner != successor.Owner() {
		t.Errorf("Inspect = %+v, %v", info, err)
	}
	unlock(t, successor)
}
