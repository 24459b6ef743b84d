package testkit_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestReplicaThroughRelay loses an acknowledged write by dropping what the master replicates.
func TestReplicaThroughRelay(t *testing.T) {
	t.Parallel()
	master, replica := testkit.Start(t), testkit.Start(t)
	link := master.Relay()
	replica.ReplicaOf(link.Addr())
	set(t, master.Client(), "replicated")
	replica.AwaitInSync(master)
	link.Drop(testkit.ToClient)
	set(t, master.Client(), "lost")
	master.Kill()
	replica.Promote()
	if !has(t, replica, "replicated") || has(t, replica, "lost") {
		t.Error("the new master does not have what it should")
	}
	set(t, replica.Client(), "after")
	replica.Restart()
	if has(t, replica, "replicated") {
		t.Error("the restarted server is not empty")
	}
}

func TestReplicationIsCutAndRestored(t *testing.T) {
	t.Parallel()
	master, replica := testkit.Start(t), testkit.Start(t)
	replica.ReplicaOf(master.Relay().Addr())
	replica.CutReplication()
	rdb := master.Client() // one connection: WAIT is about what this one has written
	set(t, rdb, "k")
	if n := rdb.Wait(t.Context(), 1, 10*time.Millisecond).Val(); n != 0 || has(t, replica, "k") {
		t.Errorf("the link is not cut: acknowledged by %d", n)
	}
	replica.RestoreReplication()
	replica.AwaitInSync(master)
	if !has(t, replica, "k") {
		t.Error("the replica has not caught up")
	}
}
