//go:build unix

package cronworker_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/storms/cronworker"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// patientAndNot are jobs that wait for Redis for as long as is usual, and for less than it is away.
func patientAndNot() []cronworker.Job {
	return []cronworker.Job{
		{Name: "patient", Spec: every, Length: brief, TTL: lease},
		{Name: "strict", Spec: every, Length: brief, TTL: lease, Deadline: time.Second},
	}
}

// TestRedisRestarted kills Redis and restarts it with its append-only file, while ticks come.
func TestRedisRestarted(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t, testkit.AOF())
	f := newFleet(t, "", server, patientAndNot()...).joined(0, 0, 0)
	f.await("runs", func() bool { return len(f.of(cronworker.Begin, "patient")) > 0 })
	restart(f, 1500*time.Millisecond)
	f.finish()
	for _, job := range f.jobs {
		mustNotMeet(t, f, job.Name, 1)
	}
}

// restart takes Redis away for so long and returns when all replicas have run on.
func restart(f *fleet, away time.Duration) {
	f.t.Helper()
	f.server.Kill()
	f.watch(away)
	f.server.Restart()
	goesOn(f)
}

// goesOn awaits that every replica tells of ticks that come from now on.
func goesOn(f *fleet) {
	f.t.Helper()
	from, seen := f.now(), len(f.entries)
	told := make(map[string]bool)
	f.await("all replicas to go on", func() bool {
		for ; seen < len(f.entries); seen++ {
			e := f.entries[seen]
			done := e.Kind == cronworker.Begin || e.Kind == cronworker.Skip && e.Reason == cronlock.Taken
			if done && time.Unix(e.Tick, 0).After(from) {
				told[e.Replica+" "+e.Job] = true
			}
		}
		return len(told) == len(f.members)*len(f.jobs)
	})
}

// TestRedisFrozen lets Redis not answer for longer than one of two jobs may be late: its ticks are skipped, and each
// replica tells why.
func TestRedisFrozen(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "", testkit.Start(t), patientAndNot()...).joined(0, 0, 0)
	f.await("runs", func() bool { return len(f.of(cronworker.Begin, "patient")) > 0 })
	freeze(f, 3*time.Second)
	f.finish()
	for _, job := range f.jobs {
		mustNotMeet(t, f, job.Name, 1)
	}
	unavailable := make(map[string]int)
	for _, e := range f.of(cronworker.Skip, "strict") {
		if e.Reason == cronlock.Unavailable {
			unavailable[e.Replica]++
		}
	}
	t.Logf("skipped for want of Redis: %v", unavailable)
	if len(unavailable) != len(f.members) {
		t.Errorf("%d of %d replicas told of a tick that was skipped for want of Redis", len(unavailable), len(f.members))
	}
}

func freeze(f *fleet, d time.Duration) {
	f.t.Helper()
	f.server.Pause()
	f.watch(d)
	f.server.Resume()
	goesOn(f)
}
