package nemesis

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/lab/faults/topology"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

// TestHashesEqualCore: the requests that links look for are those that core sends.
func TestHashesEqualCore(t *testing.T) {
	server := testkit.Start(t)
	rdb := server.Client()
	locks, err := core.New(rdb, core.WithTTL(450*time.Millisecond), core.WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	ctx := context.Background()
	awaitRenewal := func() {
		sent := func() int64 { return server.CommandStats()["evalsha"].Calls }
		before := sent()
		testkit.Eventually(t, 20*time.Second, "a renewal", func() bool { return sent() > before })
	}
	for _, lock := range []*core.Lock{
		locks.Mutex("a"), locks.Fair("b"), locks.Read("c"), core.Multi(locks.Mutex("d"), locks.Mutex("e")),
	} {
		lease, err := lock.Lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		awaitRenewal()
		_ = lease.Unlock(ctx) // it may have been lost on a busy machine
	}
	_, err = locks.Once("f").Do(ctx, func(context.Context) ([]byte, error) {
		awaitRenewal()
		return nil, nil
	})
	if err != nil {
		t.Log(err) // the same
	}
	for _, sha := range slices.Concat(acquiring, renewing, releasing) {
		if known := rdb.ScriptExists(ctx, sha).Val(); !slices.Equal(known, []bool{true}) {
			t.Errorf("core has not used the script %s", sha)
		}
	}
}

// TestEveryRowHasAPlace: each row that can be produced belongs to a fault on some topology.
func TestEveryRowHasAPlace(t *testing.T) {
	rows := make(map[int]bool)
	for _, kind := range topology.Kinds {
		for row := range maps.Values(Names(kind)) {
			rows[row] = true
		}
	}
	elsewhere := map[int]string{
		15: "worker", 16: "worker", 22: "worker", 23: "worker", 24: "worker", 51: "worker", 53: "two at once",
		19: "not on one machine", 42: "would spoil the rest", 46: "mutant",
	}
	for row := 1; row <= 53; row++ {
		if rows[row] == (elsewhere[row] != "") {
			t.Errorf("row %d: here %v, elsewhere %q", row, rows[row], elsewhere[row])
		}
	}
}
