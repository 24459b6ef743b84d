package core_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestReplicaAckInCluster waits at the master of each key for its own replica, also after one of the masters was
// replaced, of which the client is told by MOVED.
func TestReplicaAckInCluster(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	cluster := testkit.StartCluster(t, 3, testkit.Replicas(1))
	locks := newClient(t, cluster.Client(), core.WithTTL(long), core.WithReplicaAck(1, time.Second))
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
			lease := mustLock(t, locks.Mutex(name))
			extendSoon(t, lease)
			unlock(t, lease)
			unlock(t, mustLock(t, locks.Write(name)))
		}
		unlock(t, mustLock(t, core.Multi(locks.Mutex("{"+first+"}a"), locks.Mutex("{"+first+"}b"))))
	}
	lockAll()
	for i, master := range cluster.Masters {
		if master.CommandStats()["wait"].Calls == 0 {
			t.Errorf("master %d was not asked to wait", i)
		}
	}

	kept := mustLock(t, locks.Mutex(first))
	cluster.Failover(cluster.Replicas[0])
	cluster.Masters[0].AwaitInSync(cluster.Replicas[0])
	extendSoon(t, kept)
	unlock(t, kept)
	lockAll()
	if cluster.Replicas[0].CommandStats()["wait"].Calls == 0 {
		t.Error("the new master was not asked to wait")
	}

	cluster.Masters[0].CutReplication() // it is the replica now
	_, err := locks.Mutex(first).TryLock(ctx)
	wantNotReplicated(t, err, 0, 1)
	unlock(t, mustLock(t, locks.Mutex(elsewhere)))
}
