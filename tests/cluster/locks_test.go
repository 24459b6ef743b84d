package cluster_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestCluster locks, enters again, waits and renews names all over a Cluster.
func TestCluster(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	cluster := testkit.StartCluster(t, 3)
	a, b := coretest.NewClient(t, cluster.Client(), core.WithTTL(10*time.Second)), coretest.NewClient(t, cluster.Client())
	const names = 30
	var leases []*core.Lease
	for i := range names {
		leases = append(leases, coretest.MustLock(t, a.Mutex(fmt.Sprint("name", i))))
		inner := coretest.MustLockWith(t, leases[i].Context(), a.Mutex(fmt.Sprint("name", i)))
		coretest.Unlock(t, inner)
	}
	coretest.AwaitRenewed(t, leases, 11*time.Second)
	for i, l := range leases {
		if _, err := b.Mutex(fmt.Sprint("name", i)).TryLock(ctx); err == nil {
			t.Errorf("name%d was granted twice", i)
		}
		if l.Context().Err() != nil {
			t.Fatalf("name%d: %v", i, context.Cause(l.Context()))
		}
	}
	waiting := coretest.LockLater(b.Mutex("name0"))
	coretest.Unlock(t, leases[0])
	if err := coretest.Receive(t, waiting); err != nil {
		t.Errorf("waiter: %v", err)
	}
}

// TestStrategiesInCluster uses every strategy on names all over a Cluster: whatever a script touches lies in one slot.
func TestStrategiesInCluster(t *testing.T) {
	t.Parallel()
	cluster := testkit.StartCluster(t, 3)
	a, b := coretest.NewClient(t, cluster.Client()), coretest.NewClient(t, cluster.Client())
	for kind, strategy := range coretest.Strategies(a) {
		for i := range 6 {
			name := fmt.Sprint(kind, i)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				coretest.EnterEveryWay(t, name, strategy, coretest.Strategies(b)[kind])
			})
		}
	}
}

// TestFrozenMasterDelaysNoOtherMaster freezes one master of a Cluster, with a read timeout that outlasts the leases.
// Leases on the other masters must be renewed, and locks there be taken, as if nothing had happened.
func TestFrozenMasterDelaysNoOtherMaster(t *testing.T) {
	t.Parallel()
	cluster := testkit.StartCluster(t, 3)
	const ttl = 6 * time.Second // on a busy machine each renewal takes a second or two
	rdb := cluster.Client(func(o *redis.ClusterOptions) { o.ReadTimeout = 2 * ttl })
	locks := coretest.NewClient(t, rdb, core.WithTTL(ttl))
	onFrozen := func(name string) bool {
		master, err := rdb.MasterForKey(context.Background(), "lock:"+name)
		if err != nil {
			t.Fatal(err)
		}
		return master.Options().Addr == cluster.Masters[0].Addr()
	}
	var healthy, doomed []*core.Lease
	for i := range 60 {
		name := fmt.Sprint("kept", i)
		if lease := coretest.MustLock(t, locks.Mutex(name)); onFrozen(name) {
			doomed = append(doomed, lease)
		} else {
			healthy = append(healthy, lease)
		}
	}
	cluster.Masters[0].Pause()
	ctx, stop := context.WithCancel(context.Background())
	var rounds atomic.Int64
	var all sync.WaitGroup
	for i := range 32 { // on all masters at once
		name := fmt.Sprint("busy", i)
		frozen := onFrozen(name)
		all.Go(func() {
			for ctx.Err() == nil {
				bounded, cancel := context.WithTimeout(ctx, coretest.Within)
				lease, err := locks.Mutex(name).Lock(bounded)
				cancel()
				if err == nil {
					_ = lease.Unlock(ctx)
				}
				if !frozen && err != nil && ctx.Err() == nil {
					t.Errorf("%s, on a healthy master: %v", name, err)
				}
				if !frozen {
					rounds.Add(1)
				}
			}
		})
	}
	coretest.AwaitRenewed(t, healthy, 2*ttl)
	stop()
	all.Wait()
	for _, l := range healthy {
		if l.Context().Err() != nil {
			t.Errorf("a lease on a healthy master was lost: %v", context.Cause(l.Context()))
		}
	}
	for _, l := range doomed {
		coretest.WaitFor(t, l.Done(), "the leases on the frozen master to end")
	}
	t.Logf("%d leases kept, %d ended, %d rounds on healthy masters", len(healthy), len(doomed), rounds.Load())
	cluster.Masters[0].Resume()
}

// calls returns how often the masters of a Cluster have run a command.
func calls(cluster *testkit.Cluster, command string) (n int64) {
	for _, s := range cluster.Masters {
		n += s.CommandStats()[command].Calls
	}
	return n
}
