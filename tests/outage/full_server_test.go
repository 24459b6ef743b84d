package outage_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
	"github.com/redis/go-redis/v9"
)

// TestFullServer: a server without memory refuses grants, leaves nothing, and renews and releases what is held.
func TestFullServer(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	rdb := server.Client()
	ctx := context.Background()
	locks := coretest.NewClient(t, rdb, core.WithTTL(3*time.Second))
	lease := coretest.MustLock(t, locks.Mutex("held"))
	coretest.FillUp(rdb)

	for kind, strategy := range coretest.Strategies(locks) {
		if _, err := strategy(kind).TryLock(ctx); err == nil || !strings.Contains(err.Error(), "OOM") {
			t.Errorf("%s: TryLock on a full server: %v", kind, err)
		}
	}
	if _, err := locks.Once("name").Begin(ctx); err == nil || !strings.Contains(err.Error(), "OOM") {
		t.Errorf("Begin on a full server: %v", err)
	}
	if keys := rdb.Keys(ctx, "holdfast:released*").Val(); len(keys) != 0 {
		t.Errorf("refused requests have left %v", keys)
	}
	coretest.AwaitRenewed(t, []*core.Lease{lease}, 5*time.Second)
	if err := lease.Extend(ctx, coretest.Long); err != nil {
		t.Errorf("extend: %v", err)
	}
	coretest.Unlock(t, lease)
	if keys := rdb.Keys(ctx, "lock:*").Val(); len(keys) != 0 {
		t.Errorf("left behind: %v", keys)
	}
}

// TestFullServerAndLine: a server without memory refuses places and grants, but renews, releases, and grants to those
// that were in line before.
func TestFullServerAndLine(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb := server.Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(3*time.Second))
	var leases []*core.Lease
	var waiting []<-chan error
	for kind, strategy := range coretest.OnlyQueued(locks) {
		leases = append(leases, coretest.MustLock(t, strategy(kind)))
		waiting = append(waiting, coretest.LockLater(locks.Fair(kind)))
		coretest.AwaitQueue(t, locks, kind, 1)
	}
	leases = append(leases, coretest.MustLock(t, locks.Read("Reader"), core.WithTTL(coretest.Long)))
	leases = append(leases, coretest.MustLock(t, locks.Read("Reader")))
	coretest.FillUp(rdb)
	for kind, strategy := range coretest.OnlyQueued(locks) {
		_, err := strategy(kind + " anew").TryLock(ctx)
		if err == nil || !strings.Contains(err.Error(), "OOM") {
			t.Errorf("%s on a full server: %v", kind, err)
		}
	}
	coretest.AwaitRenewed(t, leases, 5*time.Second) // and the places with them
	for _, l := range leases {
		coretest.Unlock(t, l)
	}
	for _, done := range waiting {
		if err := coretest.Receive(t, done); err != nil {
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
	rdb := testkit.Start(t).Client()
	var leases []*core.Lease
	ahead := time.Now().Add(time.Hour).UnixMilli()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	for kind, strategy := range coretest.OnlyQueued(locks) {
		leases = append(leases, coretest.MustLock(t, strategy(kind+" kept"), core.WithMinHold(2*time.Second)))
		compact := coretest.MustLock(t, strategy(kind+" compact")) // no other client has asked for it
		rdb.PExpire(ctx, "lock:"+kind+" compact", time.Hour)
		lease := coretest.MustLock(t, strategy(kind))
		leases = append(leases, compact, lease)
		coretest.Expand(t, locks, kind)
		rdb.PExpire(ctx, "lock:"+kind, time.Hour)
		if rdb.HExists(ctx, "lock:"+kind, "exclusive_until").Val() {
			rdb.HSet(ctx, "lock:"+kind, "exclusive_until", ahead)
			continue
		}
		rdb.ZAdd(ctx, "holdfast:share_expiries:{lock:"+kind+"}", redis.Z{Score: float64(ahead), Member: lease.Owner()})
		rdb.PExpire(ctx, "holdfast:share_expiries:{lock:"+kind+"}", time.Hour)
	}
	coretest.FillUp(rdb)
	for _, lease := range leases {
		coretest.Unlock(t, lease)
	}
	testkit.Eventually(t, coretest.Within, "all locks to be gone", func() bool {
		return len(rdb.Keys(ctx, "lock:*").Val()) == 0
	})
}
