package cluster_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestListInCluster: a walk goes over all masters, and reads locks of every kind.
func TestListInCluster(t *testing.T) {
	t.Parallel()
	cluster := testkit.StartCluster(t, 3)
	names := coretest.SeedLocks(t, cluster.Client(), "name", 900)
	locks, other := coretest.NewClient(t, cluster.Client(), core.WithTTL(coretest.Long)), coretest.NewClient(t, cluster.Client())
	for kind, strategy := range coretest.Strategies(locks) {
		coretest.MustLock(t, strategy(kind))
		_ = coretest.LockLater(other.Write(kind)) // until the client is closed
		coretest.AwaitQueue(t, locks, kind, 1)
		if e := coretest.ListAll(t, locks, kind)[kind]; e.Holds != 1 || len(e.Holders) != 1 || e.Places != 1 {
			t.Errorf("%s: %+v", kind, e)
		}
		coretest.MustBegin(t, locks.Once(kind))
	}
	coretest.WantAll(t, coretest.PagesOf(t, locks, "name", 50, func(int) {}), names)
	records := 0
	for r, err := range locks.Records(context.Background(), "") {
		if err != nil || r.State != core.StateRunning {
			t.Errorf("%+v, %v", r, err)
		}
		records++
	}
	if want := len(coretest.Strategies(locks)); records != want {
		t.Errorf("%d records, want %d", records, want)
	}
}

// TestListWhileSlotsMove moves slots during a walk: away from the master that is scanned, to it, and between the others. Nothing is
// missing.
func TestListWhileSlotsMove(t *testing.T) {
	t.Parallel()
	cluster := testkit.StartCluster(t, 3)
	coretest.AwaitEpochs(t, cluster)
	rdb := cluster.Client()
	names := coretest.SeedLocks(t, rdb, "name", 600)
	tagged := make(map[*testkit.Server][]int) // slots with many locks, by their master
	for i := 0; len(tagged[cluster.Masters[0]]) < 2 || len(tagged[cluster.Masters[1]]) < 2 || len(tagged[cluster.Masters[2]]) < 2; i++ {
		slot := cluster.Slot(fmt.Sprintf("{%d}", i))
		owner := cluster.Owner(slot)
		if len(tagged[owner]) == 2 {
			continue
		}
		tagged[owner] = append(tagged[owner], slot)
		names = append(names, coretest.SeedLocks(t, rdb, fmt.Sprintf("{%d}:", i), 100)...)
	}
	locks := coretest.NewClient(t, cluster.Client())
	a, b, c := cluster.Masters[0], cluster.Masters[1], cluster.Masters[2]
	moves := map[int]func(){
		2:  func() { cluster.Migrate(tagged[a][0], c) },
		3:  func() { cluster.Migrate(tagged[c][0], a) },
		4:  func() { cluster.Migrate(tagged[b][0], a) },
		16: func() { cluster.Migrate(tagged[b][1], a) },
		17: func() { cluster.Migrate(tagged[a][1], b) },
		18: func() { cluster.Migrate(tagged[c][1], a) },
	}
	done := 0
	found := coretest.PagesOf(t, locks, "", 20, func(page int) {
		if move := moves[page]; move != nil {
			move()
			done++
		}
	})
	if coretest.WantAll(t, found, names); done != len(moves) {
		t.Errorf("the walk ended after %d of %d moves", done, len(moves))
	}
}

// TestListOfAMovingSlot: while a slot moves, its locks are listed with what their own keys tell.
func TestListOfAMovingSlot(t *testing.T) {
	t.Parallel()
	cluster := testkit.StartCluster(t, 3)
	locks := coretest.NewClient(t, cluster.Client(), core.WithTTL(coretest.Long))
	compact := coretest.MustLock(t, locks.Fair("{tag}:compact"))
	coretest.MustLock(t, locks.Mutex("{tag}:mutex"))
	coretest.MustLock(t, locks.Read("{tag}:read"))
	coretest.Expand(t, locks, "{tag}:mutex", "{tag}:read")
	slot := cluster.Slot("{tag}")
	migration := cluster.BeginMigration(slot, coretest.ServedElsewhere(cluster, slot))
	found := coretest.ListAll(t, locks, "{tag}:")
	if e := found["{tag}:compact"]; e.Mode != core.ModeFair || e.Places != 0 || e.Holds != 1 || e.Holders[0].Token != compact.Token() {
		t.Errorf("%+v", e)
	}
	if e := found["{tag}:mutex"]; e.Mode != core.ModeMutex || e.Places != -1 || e.Holds != 1 || len(e.Holders) != 1 {
		t.Errorf("%+v", e)
	}
	if e := found["{tag}:read"]; e.Mode != core.ModeRead || e.Places != -1 && e.Holds != 1 {
		t.Errorf("%+v", e)
	}
	migration.End()
	if e := coretest.ListAll(t, locks, "{tag}:")["{tag}:read"]; e.Places != 0 || e.Holds != 1 {
		t.Errorf("after the move: %+v", e)
	}
}

// TestListThroughAFailover replaces each master during a walk: the scan of a server that was replaced begins again.
func TestListThroughAFailover(t *testing.T) {
	t.Parallel()
	cluster := testkit.StartCluster(t, 3, testkit.Replicas(1))
	names := coretest.SeedLocks(t, cluster.Client(), "name", 1500)
	cluster.AwaitInSync()
	locks := coretest.NewClient(t, cluster.Client())
	replaced := 0
	found := coretest.PagesOf(t, locks, "", 20, func(page int) {
		if page%10 == 3 && replaced < len(cluster.Replicas) {
			cluster.Failover(cluster.Replicas[replaced])
			replaced++
		}
	})
	if coretest.WantAll(t, found, names); replaced != len(cluster.Replicas) {
		t.Errorf("the walk ended after %d failovers", replaced)
	}
}
