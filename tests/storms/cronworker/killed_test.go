//go:build unix

package cronworker_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/storms/cronworker"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

const lease = time.Second

// never is longer than any test: a run of that length continues until its context ends.
const never = time.Hour

// seized is a tick whose runner died, or was stopped, and the run that came next.
type seized struct {
	lost, next cronworker.Entry
	after      time.Duration // from the end of the runner to the next run, by the clock of Redis
}

// killRunner kills the runner of a job in the middle of a run, and returns the run that follows: of the same tick if that
// is run again, or of any. The dead one is started again.
func killRunner(f *fleet, job string, again bool) seized {
	f.t.Helper()
	first := f.running(job)
	runner := f.by(first)
	runner.kill()
	killed := f.now()
	next := f.begun("a run after that of the dead", job, func(e cronworker.Entry) bool {
		return e.At.After(killed) && (!again || e.Tick == first.Tick)
	})
	runner.start()
	return seized{first, next, next.At.Sub(killed)}
}

// TestKilledRunner kills a replica in the middle of a run without failover: the tick is over, and is recorded as lost.
func TestKilledRunner(t *testing.T) {
	t.Parallel()
	job := cronworker.Job{Name: "job", Spec: every, Length: never, TTL: lease}
	f := newFleet(t, "", testkit.Start(t), job).joined(0, 0, 0)
	got := killRunner(f, "job", false)
	t.Logf("the next tick ran %v after the death, the lease is %v", got.after, lease)
	if got.next.Tick <= got.lost.Tick {
		t.Errorf("tick %d ran after %d", got.next.Tick, got.lost.Tick)
	}
	f.finish()
	mustNotMeet(t, f, "job", 1)
	mustBeLost(t, f, got.lost)
}

// mustBeLost checks what the history says of a run that was not heard of any more.
func mustBeLost(t *testing.T, f *fleet, lost cronworker.Entry) {
	t.Helper()
	runs, err := cronlock.Job(f.locks(), lost.Job).History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		if r.Tick.Unix() == lost.Tick {
			if r.Outcome != cronlock.Lost || r.Replica != lost.Replica {
				t.Errorf("the history has %+v of the run %+v, want it lost there", r, lost)
			}
			return
		}
	}
	t.Errorf("the history has nothing of the run %+v", lost)
}

// mustNotMeet checks that no tick started more often than that, and no two runs were at work at the same time.
func mustNotMeet(t *testing.T, f *fleet, job string, most int) {
	t.Helper()
	s := storyOf(f.entries)
	for tick, n := range s.starts(job) {
		if n > most {
			t.Errorf("%s: tick %d started %d times, %d are allowed", job, tick, n, most)
		}
	}
	if overlaps, _, unnoticed := s.meetings(job); overlaps+unnoticed > 0 {
		t.Errorf("%s: %d overlaps, %d stale writes were not refused", job, overlaps, unnoticed)
		f.tell(60)
	}
}

// TestKilledRunnerIsFollowed does so with failover: another replica runs the tick, with a greater token, once the lease
// is over.
func TestKilledRunnerIsFollowed(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "", testkit.Start(t), cronworker.Job{
		Name: "job", Spec: "@every 4s", Length: never, TTL: lease, Attempts: 2, Deadline: within,
	}).joined(0, 0, 0)
	got := killRunner(f, "job", true)
	t.Logf("another replica ran the tick %v after the death, the lease is %v", got.after, lease)
	mustFollow(t, got)
	f.finish()
	mustNotMeet(t, f, "job", 2)
}

// mustFollow checks that a tick was taken over.
func mustFollow(t *testing.T, got seized) {
	t.Helper()
	if got.next.Tick != got.lost.Tick || got.next.Attempt != 2 {
		t.Errorf("attempt %d of tick %d followed tick %d, want attempt 2 of that", got.next.Attempt, got.next.Tick,
			got.lost.Tick)
	}
	if got.next.Token <= got.lost.Token {
		t.Errorf("token %d came after %d", got.next.Token, got.lost.Token)
	}
	if got.next.Replica == got.lost.Replica {
		t.Errorf("replica %s followed itself", got.next.Replica)
	}
}
