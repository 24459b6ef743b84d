package gocronlock_test

import (
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestProcesses lets the schedulers of three processes run one job, and kills a process at work twice. No two runs overlap,
// tokens never go back, and the processes that are left go on.
func TestProcesses(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"elect", "lock"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			server := testkit.Start(t)
			runs := make(chan run, 100_000)
			var kills [3]func()
			for i := range kills {
				kills[i] = startWorker(t, server, what, i, runs)
			}
			var all []run
			dead := make(map[int]bool)
			for range 2 {
				for since := 0; since < 20; since++ {
					all = append(all, receive(t, runs, "a run"))
				}
				victim := all[len(all)-1].worker
				kills[victim]()
				dead[victim] = true
				for survivor := false; !survivor; {
					next := receive(t, runs, "a run of another process")
					all = append(all, next)
					survivor = !dead[next.worker]
				}
			}
			checkRuns(t, all, what == "lock")
		})
	}
}

// checkRuns finds runs that overlap, and tokens that go back. With a lock, each run has a token of its own.
func checkRuns(t *testing.T, all []run, own bool) {
	t.Helper()
	slices.SortFunc(all, func(a, b run) int { return int(a.From - b.From) })
	for i := 1; i < len(all); i++ {
		before, after := all[i-1], all[i]
		switch {
		case before.To > after.From:
			t.Errorf("%+v overlaps %+v", before, after)
		case after.Token < before.Token, own && after.Token == before.Token, !own && after.Token == before.Token && after.worker != before.worker:
			t.Errorf("%+v came before %+v", before, after)
		}
	}
}
