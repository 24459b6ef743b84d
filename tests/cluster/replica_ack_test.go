package cluster_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestReplicaAckInCluster waits at the master of each key for its own replica, also after one of the masters was
// replaced, of which the client is told by MOVED.
func TestReplicaAckInCluster(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	cluster := testkit.StartCluster(t, 3, testkit.Replicas(1))
	locks := coretest.NewClient(t, cluster.Client(), core.WithTTL(coretest.Long), core.WithReplicaAck(1, time.Second))
	onFirst := func(name string) bool {
		return cluster.Owner(cluster.Slot("lock:"+name)) == cluster.Masters[0]
	}
	var all []string
	first, elsewhere := "", ""
	for i := range 12 {
		name := fmt.Sprint("name", i)
		all = append(all, name)
		if onFirst(name) {
			first = name
		} else {
			elsewhere = name
		}
	}
	lockAll := func() {
		t.Helper()
		for _, name := range all {
			lease := coretest.MustLock(t, locks.Mutex(name))
			coretest.ExtendSoon(t, lease)
			coretest.Unlock(t, lease)
			coretest.Unlock(t, coretest.MustLock(t, locks.Write(name)))
		}
		coretest.Unlock(t, coretest.MustLock(t, core.Multi(locks.Mutex("{"+first+"}a"), locks.Mutex("{"+first+"}b"))))
	}
	lockAll()
	for i, master := range cluster.Masters {
		if master.CommandStats()["wait"].Calls == 0 {
			t.Errorf("master %d was not asked to wait", i)
		}
	}

	kept := coretest.MustLock(t, locks.Mutex(first))
	cluster.Failover(cluster.Replicas[0])
	cluster.Masters[0].AwaitInSync(cluster.Replicas[0])
	coretest.ExtendSoon(t, kept)
	coretest.Unlock(t, kept)
	lockAll()
	if cluster.Replicas[0].CommandStats()["wait"].Calls == 0 {
		t.Error("the new master was not asked to wait")
	}

	cluster.Masters[0].CutReplication() // it is the replica now
	_, err := locks.Mutex(first).TryLock(ctx)
	coretest.WantNotReplicated(t, err, 0, 1)
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex(elsewhere)))
}
