//go:build unix

package cronworker_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/tests/storms/cronworker"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

const (
	second = "* * * * * *"
	every  = "@every 1s"
	brief  = 5 * time.Millisecond
)

// TestOnceEach lets three replicas come for each tick one after the other, as with clocks that differ, while the job is
// far shorter than that. A lock around the job lets each of them run it: the baseline, which shows that this test bites.
func TestOnceEach(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "", testkit.Start(t),
		cronworker.Job{Name: "spec", Spec: second, Length: brief, TTL: time.Second},
		cronworker.Job{Name: "every", Spec: every, Length: brief, TTL: time.Second},
		cronworker.Job{Name: "naive", Spec: second, Length: brief, TTL: time.Second, Naive: true},
	).joined(0, 300*time.Millisecond, 600*time.Millisecond)
	const rounds = 4
	f.await("ticks", func() bool {
		return len(f.of(cronworker.Begin, "spec")) >= rounds && len(f.of(cronworker.Begin, "every")) >= rounds &&
			len(f.of(cronworker.Begin, "naive")) >= 3*rounds
	})
	f.finish()
	s := storyOf(f.entries)
	for _, job := range []string{"spec", "every"} {
		starts := s.starts(job)
		for tick, n := range starts {
			if n > 1 {
				t.Errorf("%s: tick %d started %d times", job, tick, n)
			}
		}
		if overlaps, _, _ := s.meetings(job); overlaps > 0 {
			t.Errorf("%s: %d overlaps", job, overlaps)
		}
	}
	if most := slices.Max(slices.Collect(maps.Values(s.starts("naive")))); most < 2 {
		t.Errorf("the naive job ran %d times per tick, want at least two: the test shows nothing", most)
	}
}
