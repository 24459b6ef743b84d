package testkit_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

func TestCluster(t *testing.T) {
	t.Parallel()
	cluster := testkit.StartCluster(t, 3)
	rdb := cluster.Client()
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		if err := rdb.Set(t.Context(), key, "x", 0).Err(); err != nil {
			t.Errorf("set %s: %v", key, err)
		}
	}
	for i, s := range cluster.Masters {
		if n := s.Client().DBSize(t.Context()).Val(); n == 0 {
			t.Errorf("master %d has no key", i)
		}
		// Nodes that begin with equal ones settle that some time later, be it during a failover.
		if got, want := epoch(t, s), strconv.Itoa(i+1); got != want {
			t.Errorf("master %d has epoch %s, want %s", i, got, want)
		}
	}
}

// epoch returns how recent a master says its claim to its slots is.
func epoch(t *testing.T, s *testkit.Server) string {
	t.Helper()
	_, text, _ := strings.Cut(s.Client().ClusterInfo(t.Context()).Val(), "cluster_my_epoch:")
	value, _, found := strings.Cut(text, "\r\n")
	if !found {
		t.Fatalf("%s tells no epoch", s.Addr())
	}
	return value
}

// quick lets a cluster client learn soon who owns which slots now.
func quick(o *redis.ClusterOptions) { o.ClusterStateReloadInterval = 50 * time.Millisecond }

func TestClusterFailover(t *testing.T) {
	t.Parallel()
	c := testkit.StartCluster(t, 3, testkit.Replicas(1))
	rdb := c.Client(quick)
	slot := c.Slot("k")
	set(t, rdb, "k")
	old := c.Owner(slot)
	replica := c.Replicas[slices.Index(c.Masters, old)]
	replica.AwaitInSync(old)
	c.Failover(replica)
	if c.Owner(slot) != replica || !has(t, replica, "k") {
		t.Errorf("the slot belongs to %s", c.Owner(slot).Addr())
	}
	set(t, rdb, "{k}2")
	old.AwaitInSync(replica)
	c.Failover(old) // and back
	if c.Owner(slot) != old || !has(t, old, "{k}2") {
		t.Errorf("the slot belongs to %s", c.Owner(slot).Addr())
	}
}

func TestClusterLosesWrites(t *testing.T) {
	t.Parallel()
	c := testkit.StartCluster(t, 3, testkit.Replicas(1), testkit.DownAfter(3*time.Second))
	rdb := c.Client(quick)
	slot := c.Slot("k")
	old := c.Owner(slot)
	replica := c.Replicas[slices.Index(c.Masters, old)]
	set(t, rdb, "k")
	replica.AwaitInSync(old)
	replica.CutReplication()
	set(t, rdb, "{k}lost")
	old.Kill()
	if owner := c.AwaitOwner(slot, old); owner != replica {
		t.Fatalf("the new owner is %s", owner.Addr())
	}
	set(t, rdb, "{k}after")
	if !has(t, replica, "k") || has(t, replica, "{k}lost") || !has(t, replica, "{k}after") {
		t.Error("the new owner does not have what it should")
	}
	replica.RestoreReplication()
	old.Restart()
	old.AwaitInSync(replica)
}

func TestMigration(t *testing.T) {
	t.Parallel()
	c := testkit.StartCluster(t, 3)
	rdb := c.Client(quick)
	keys := []string{"k", "{k}1", "{k}2"}
	for _, key := range keys {
		set(t, rdb, key)
	}
	slot := c.Slot("k")
	from := c.Owner(slot)
	to := c.Masters[(slices.Index(c.Masters, from)+1)%3]
	m := c.BeginMigration(slot, to)
	m.MoveKeys("k")
	for _, key := range append(keys, "{k}new") {
		set(t, rdb, key)
	}
	if n := from.Client().DBSize(t.Context()).Val(); n != 2 {
		t.Errorf("the old owner has %d keys, want 2", n)
	}
	if n := to.Client().DBSize(t.Context()).Val(); n != 2 {
		t.Errorf("the new owner has %d keys, want 2", n)
	}
	m.MoveKeys()
	m.End()
	if c.Owner(slot) != to || to.Client().DBSize(t.Context()).Val() != 4 {
		t.Error("the new owner does not have all")
	}
	c.Migrate(slot, from)
	if n := from.Client().DBSize(t.Context()).Val(); c.Owner(slot) != from || n != 4 {
		t.Error("the old owner does not have all again")
	}
	if err := rdb.MGet(t.Context(), keys...).Err(); err != nil {
		t.Errorf("after both ways: %v", err)
	}
}
