package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestInstanceOfShortProcess: a client that is closed at once, and its client of go-redis right after it, leaves its instance
// for the longest TTL. Few of them may have had no answer in time: the machine is busy.
func TestInstanceOfShortProcess(t *testing.T) {
	t.Parallel()
	const clients, ttl = 20, time.Minute
	server := testkit.Start(t)
	for range clients {
		rdb := server.Client()
		locks, err := core.New(rdb, core.WithTTL(ttl))
		if err != nil {
			t.Fatal(err)
		}
		if err := core.Do(t.Context(), locks.Mutex("name"), func(context.Context) error { return nil }); err != nil {
			t.Error(err)
		}
		if err := locks.Close(); err != nil {
			t.Error(err)
		}
		_ = rdb.Close()
	}
	rdb, soon := server.Client(), 0
	keys := rdb.Keys(t.Context(), "holdfast:client:*").Val()
	for _, key := range keys {
		left := rdb.PTTL(t.Context(), key).Val()
		if left > ttl+2*time.Minute {
			t.Errorf("kept for %v after a short run", left)
		}
		if left <= ttl {
			soon++
		}
	}
	if len(keys) < clients/2 || soon < len(keys)-clients/4 {
		t.Errorf("%d clients have left %d instances, only %d of them for the TTL", clients, len(keys), soon)
	}
}

// TestInstanceOfKilledProcess: without a Close, the instance lasts little longer than the longest TTL at first.
func TestInstanceOfKilledProcess(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	lease := mustLock(t, newClient(t, rdb, core.WithTTL(time.Minute), core.WithInstance("web-1:7")).Mutex("name"))
	awaitLeft(t, rdb, instanceKey(lease.Owner()), 3*time.Minute)
}

// TestCloseOfIdleClientBesideFrozenRedis: Close does not wait for the end of the instance without a bound.
func TestCloseOfIdleClientBesideFrozenRedis(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	rdb := server.Client(func(o *redis.Options) { o.ReadTimeout = -1 })
	locks := newClient(t, rdb, core.WithTTL(long), core.WithInstance("web-1:7"))
	lease := mustLock(t, locks.Mutex("name"))
	awaitLeft(t, server.Client(), instanceKey(lease.Owner()), long+2*time.Minute)
	unlock(t, lease)
	server.Pause()
	defer server.Resume()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		wantErr(t, locks.Close(), nil)
	}()
	waitFor(t, closed, "Close")
}
