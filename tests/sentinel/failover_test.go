package sentinel_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// seldom lets go-redis ask by itself so seldom for the owners of the slots that it does not in a test.
func seldom(o *redis.ClusterOptions) { o.ClusterStateReloadInterval = time.Hour }

// replicaOf returns the replica that a master had at the start.
func replicaOf(t testing.TB, cluster *testkit.Cluster, master *testkit.Server) *testkit.Server {
	t.Helper()
	for i, s := range cluster.Masters {
		if s == master {
			return cluster.Replicas[i]
		}
	}
	t.Fatal("no replica")
	return nil
}

// TestMasterCrash kills a master. Its replica is promoted with all that it had; then holders must still have their
// leases, and waiters on that shard get the lock by message, whatever go-redis knows by itself.
func TestMasterCrash(t *testing.T) {
	t.Parallel()
	cluster := testkit.StartCluster(t, 3, testkit.Replicas(1), testkit.DownAfter(time.Second))
	holder := coretest.NewClient(t, cluster.Client(seldom), core.WithTTL(15*time.Second))
	other := coretest.NewClient(t, cluster.Client(seldom), core.WithTTL(15*time.Second))
	victim := cluster.Owner(cluster.Slot("lock:{c}"))
	held := make(map[string]*core.Lease)
	waiting := make(map[string]<-chan *core.Lease)
	for _, kind := range []string{"Mutex", "Fair"} {
		held[kind] = coretest.MustLock(t, coretest.Strategies(holder)[kind]("{c}:"+kind))
		waiting[kind] = coretest.LeaseLater(t, coretest.AskingAgain{Locker: coretest.Strategies(other)[kind]("{c}:" + kind)})
	}
	coretest.AwaitListeners(t, holder, "{c}:Mutex", 1)
	coretest.AwaitQueue(t, holder, "{c}:Fair", 1)
	replicaOf(t, cluster, victim).AwaitInSync(victim)
	victim.Kill()
	after := coretest.MustLock(t, coretest.AskingAgain{Locker: holder.Mutex("{c}:new")}) // as soon as the shard works again
	coretest.Unlock(t, after)
	coretest.AwaitRenewed(t, []*core.Lease{held["Mutex"], held["Fair"]}, 15*time.Second)
	coretest.AwaitListeners(t, holder, "{c}:Mutex", 1)
	for kind, lease := range held {
		coretest.Unlock(t, lease)
		next := coretest.AwaitLease(t, waiting[kind])
		if next.Token() <= lease.Token() {
			t.Errorf("%s: token %d came after %d", kind, next.Token(), lease.Token())
		}
		coretest.Unlock(t, next)
	}
}

// TestCoordinatedFailover lets replicas take the places of their masters, one after the other, while locks all over
// the Cluster are held, waited for and contended for. Nothing must be lost.
func TestCoordinatedFailover(t *testing.T) {
	t.Parallel()
	cluster := testkit.StartCluster(t, 3, testkit.Replicas(1), testkit.DownAfter(2*time.Second))
	a, b := coretest.NewClient(t, cluster.Client(seldom), core.WithTTL(10*time.Second)), coretest.NewClient(t, cluster.Client(seldom))
	var held []*core.Lease
	var names []string
	var locks []*core.Lock
	for i := range 9 {
		for kind, lock := range coretest.Strategies(a) {
			held = append(held, coretest.MustLock(t, lock(fmt.Sprint("held", kind, i))))
		}
		name := fmt.Sprint("name", i)
		names = append(names, name)
		locks = append(locks, a.Mutex(name), b.Mutex(name), a.Fair(name), b.Write(name))
	}
	r := coretest.Contend(t, locks...)
	for _, replica := range cluster.Replicas {
		before := r.Least(names)
		cluster.Failover(replica)
		testkit.Eventually(t, coretest.Within, "all locks to be taken again", func() bool { return r.Least(names) > before+2 })
	}
	coretest.AwaitRenewed(t, held, 10*time.Second)
	r.Check(t)
	for _, l := range held {
		if l.Context().Err() != nil {
			t.Errorf("%s was lost: %v", l.Name(), context.Cause(l.Context()))
		}
	}
}

// TestFrozenMasterIsReplaced freezes a master with commands under way, which go-redis would wait for in vain for a
// minute. They must be sent to its replica once that is promoted.
func TestFrozenMasterIsReplaced(t *testing.T) {
	t.Parallel()
	cluster := testkit.StartCluster(t, 3, testkit.Replicas(1), testkit.DownAfter(time.Second))
	patient := func(o *redis.ClusterOptions) { o.ReadTimeout = time.Minute }
	locks := coretest.NewClient(t, cluster.Client(seldom, patient), core.WithTTL(20*time.Second))
	held := []*core.Lease{coretest.MustLock(t, locks.Mutex("{f}:held")), coretest.MustLock(t, locks.Fair("{f}:fair"))}
	victim := cluster.Owner(cluster.Slot("{f}"))
	replicaOf(t, cluster, victim).AwaitInSync(victim)
	victim.Pause()
	for _, kind := range []string{"Mutex", "Fair"} {
		coretest.Unlock(t, coretest.AwaitLease(t, coretest.LeaseLater(t, coretest.AskingAgain{Locker: coretest.Strategies(locks)[kind]("{f}:" + kind)})))
	}
	coretest.AwaitRenewed(t, held, 20*time.Second)
	for _, l := range held {
		coretest.Unlock(t, l)
	}
	victim.Resume()
}
