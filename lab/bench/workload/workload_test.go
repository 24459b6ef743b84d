package workload_test

import (
	"context"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/lab/bench/contestant"
	"github.com/holdfast-go/holdfast/lab/bench/measure"
	"github.com/holdfast-go/holdfast/lab/bench/shape"
	"github.com/holdfast-go/holdfast/lab/bench/workload"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestWorkloads: each ends, and fills the book with what it says.
func TestWorkloads(t *testing.T) {
	t.Parallel()
	b := workload.Bench{
		Servers: []*testkit.Server{
			testkit.Start(t, testkit.TCP()), testkit.Start(t, testkit.TCP()), testkit.Start(t, testkit.TCP()),
		},
		Contestants: contestant.All(), Book: measure.NewBook(), Log: io.Discard,
		PairRounds: 1, PairTime: 20 * time.Millisecond, LoneRounds: 20, LoneTime: time.Millisecond,
		ContestRounds: 1, ContestTime: 50 * time.Millisecond,
		Leases: 100, LeaseTime: 200 * time.Millisecond, Waiters: 50, Readers: 50,
	}
	for _, w := range b.Workloads() {
		if err := w.Run(context.Background()); err != nil {
			t.Errorf("%s: %v", w.Name, err)
		}
		if !b.Book.Has(w.Name) {
			t.Errorf("%s has measured nothing", w.Name)
		}
	}
	median := func(work, who string, size int, figure string) float64 {
		return b.Book.Median(measure.Key{Work: work, Who: who, Size: size, Figure: figure})
	}
	for what, c := range map[string]struct{ got, want float64 }{
		"lost leases":                   {median(workload.WorkLeases, "holdfast Mutex", 100, "lost"), 0},
		"subscribed connections":        {median(workload.WorkWaiters, "holdfast Mutex", 50, "subscribed connections"), 1},
		"commands of a guarded request": {median(workload.WorkOnce, workload.OnceName, 1, "commands"), 2},
		"commands of a bare pair":       {median(workload.WorkPairs, "bare scripts", 1, "commands"), 2},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", what, c.got, c.want)
		}
	}
}

// TestServerCost: each shape takes time and leaves what is known of it, and no round was lost.
func TestServerCost(t *testing.T) {
	t.Parallel()
	cost := workload.ServerCost{
		Shapes: shape.All(), Book: measure.NewBook(), Log: io.Discard, Rounds: 3, Pairs: 20, Left: 50, Later: time.Millisecond,
	}
	for range 1 + len(cost.Shapes) {
		cost.Servers = append(cost.Servers, testkit.Start(t))
	}
	if err := cost.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	keys := map[string]float64{"holdfast Once": 1, shape.OnceByHand("").Name: 1} // the record; no lock leaves a key
	for _, s := range cost.Shapes {
		values := func(work, figure string) []float64 {
			return cost.Book.Values(measure.Key{Work: work, Who: s.Name, Size: 1, Figure: figure})
		}
		pairs := values(workload.WorkServer, "pair us")
		if len(pairs) != cost.Rounds || measure.Median(pairs) <= 0 {
			t.Errorf("%s: times %v", s.Name, pairs)
		}
		if got := values(workload.WorkLeft, "keys"); !slices.Equal(got, []float64{keys[s.Name]}) {
			t.Errorf("%s leaves %v keys a pair, want %v", s.Name, got, keys[s.Name])
		}
	}
}
