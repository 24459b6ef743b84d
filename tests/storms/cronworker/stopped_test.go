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

// stopRunner stops the runner of a job in the middle of a run until another one has taken its tick over, and returns
// how the first one ended.
func stopRunner(f *fleet, job string) (seized, cronworker.Entry) {
	f.t.Helper()
	first := f.running(job)
	runner := f.by(first)
	runner.stop()
	stopped := f.now()
	next := f.begun("a run after that", job, func(e cronworker.Entry) bool { return e.At.After(stopped) })
	runner.resume()
	var end cronworker.Entry
	f.await("the stopped one to end", func() (ended bool) {
		end, ended = f.end(first)
		return ended
	})
	return seized{first, next, next.At.Sub(stopped)}, end
}

// TestStoppedRunner stops a replica for longer than its lease: another one takes over. When the first continues, its
// context is over, and what it writes without looking at that is refused.
func TestStoppedRunner(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "", testkit.Start(t), cronworker.Job{
		Name: "job", Spec: "@every 4s", Length: never, TTL: lease, Attempts: 2, Deadline: within,
	}).joined(0, 0, 0)
	got, end := stopRunner(f, "job")
	t.Logf("another replica ran the tick %v after the stop, the lease is %v", got.after, lease)
	mustFollow(t, got)
	if !end.Over || !end.Refused {
		t.Errorf("the stopped run ended with its context over: %v, its write refused: %v, want both", end.Over, end.Refused)
	}
	f.finish()
	mustNotMeet(t, f, "job", 2)
}

// TestStalledReplica stops a replica that is alone for longer than some periods: when it continues, each tick of that time
// is started or skipped, once, and so are those that follow.
func TestStalledReplica(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "", testkit.Start(t), cronworker.Job{Name: "job", Spec: every, Length: brief, TTL: lease}).joined(0)
	f.await("runs", func() bool { return len(f.of(cronworker.Begin, "job")) > 1 })
	f.members[0].stop()
	f.watch(2500 * time.Millisecond)
	f.members[0].resume()
	goesOn(f)
	f.finish()
	told := map[int64]int{}
	for _, e := range append(f.of(cronworker.Begin, "job"), f.of(cronworker.Skip, "job")...) {
		told[e.Tick]++
	}
	ticks := slices.Sorted(maps.Keys(told))
	for i, tick := range ticks {
		if told[tick] != 1 || i > 0 && tick != ticks[i-1]+1 {
			t.Errorf("tick %d was told %d times, after %d", tick, told[tick], ticks[max(i-1, 0)])
		}
	}
}
