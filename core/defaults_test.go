package core_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// TestLostRepliesWithDefaults loses the replies to acquire, renew and release on a client with go-redis's default
// options and several warm connections, where a plain script would be executed up to four times.
func TestLostRepliesWithDefaults(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]redistest.LossMode{"Silent": redistest.Silent, "Closed": redistest.Closed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			server := redistest.Start(t)
			relay := server.Relay()
			rdb := relay.Client()
			warmPool(t, rdb)
			renewed := make(chan error, 16)
			locks := newClient(t, rdb, core.WithTTL(6*time.Second), core.WithHooks(core.Hooks{
				Renewed: func(r core.Renewed) { renewed <- r.Err },
			}))
			known := mustLock(t, locks.Mutex("known")) // the scripts
			if err := known.Extend(ctx, long); err != nil {
				t.Errorf("extend: %v", err)
			}
			unlock(t, known)

			relay.LoseReplies("lock:name", 1, how) // acquire
			outer := mustLock(t, locks.Mutex("name"))
			relay.LoseReplies("lock:name", 1, how) // enter again
			inner := mustLockWith(t, outer.Context(), locks.Mutex("name"))
			if inner.Token() != outer.Token() {
				t.Errorf("inner token %d, outer %d", inner.Token(), outer.Token())
			}
			wantHolds(t, locks, outer.Owner(), 2)

			relay.LoseReplies("lock:name", 1, how) // renew
			for renewals := 0; renewals < 2; {
				select {
				case err := <-renewed:
					if err == nil {
						renewals++
					}
				case <-outer.Done():
					t.Fatalf("the lease ended: %v", context.Cause(outer.Context()))
				case <-time.After(within):
					t.Fatal("no renewal")
				}
			}
			wantHolds(t, locks, outer.Owner(), 2)

			for holds, lease := range []*core.Lease{outer, inner} { // release
				relay.LoseReplies("lock:name", 1, how)
				unlock(t, lease)
				wantHolds(t, locks, outer.Owner(), 1-holds)
			}
			if lost := relay.LostReplies(); lost < 5 {
				t.Errorf("%d replies were lost, want 5", lost)
			}
			if n := server.Client().Exists(ctx, "lock:name").Val(); n != 0 {
				t.Error("the lock is still there")
			}
		})
	}
}

func wantHolds(t *testing.T, locks *core.Client, owner string, holds int) {
	t.Helper()
	info, err := locks.Inspect(context.Background(), "name")
	switch {
	case err != nil:
		t.Errorf("inspect: %v", err)
	case holds == 0 && len(info.Holders) != 0,
		holds > 0 && (len(info.Holders) != 1 || info.Holders[0].Owner != owner || info.Holders[0].Holds != holds):
		t.Errorf("holders %+v, want %d holds of %s", info.Holders, holds, owner)
	}
}

// warmPool opens several connections, by as many requests at once that take a moment.
func warmPool(t *testing.T, rdb *redis.Client) {
	t.Helper()
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			rdb.XRead(context.Background(), &redis.XReadArgs{
				Streams: []string{"nothing", "$"}, Block: 20 * time.Millisecond,
			})
		})
	}
	all.Wait()
	if n := rdb.PoolStats().IdleConns; n < 2 {
		t.Errorf("%d idle connections", n)
	}
}
