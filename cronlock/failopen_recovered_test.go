package cronlock_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestUnguardedTickDoesNotRunAgain: a tick that has run while Redis was stopped comes again when Redis goes on, in its time. It
// is recorded, so that other replicas do not run it either.
func TestUnguardedTickDoesNotRunAgain(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := newClient(t, server.Client())
	opts := []cronlock.Option{cronlock.FailOpen(), cronlock.WithStartDeadline(time.Second), cronlock.WithMaxSkew(time.Minute)}
	r := newReplica(t, locks, idle, opts...)
	if err := cronlock.Register(t.Context(), r.cron, "job"); err != nil {
		t.Fatal(err)
	}
	tick := time.Now().Add(30 * time.Second) // by clocks that are behind
	server.Pause()
	r.fire(tick)
	server.Resume()
	r.expect(t, 1)
	r.fire(tick)
	r.expect(t, 1, cronlock.Taken)
	testkit.Eventually(t, patience, "the record of the run", func() bool {
		return slices.ContainsFunc(history(t, locks), func(run cronlock.Run) bool {
			return run.Tick.Equal(tick) && run.Outcome == cronlock.Success && run.Replica == r.runs()[0].Replica
		})
	})
	other := newReplica(t, newClient(t, server.Client()), idle, opts...)
	other.fire(tick)
	other.expect(t, 0, cronlock.Taken)
}

// TestUnguardedExclusiveRunExcludes: a run that began without Redis has no lock there when Redis replies again. Nor do two such
// runs overlap on one replica.
func TestUnguardedExclusiveRunExcludes(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	relay := server.Relay()
	t.Cleanup(relay.Heal)
	locks := newClient(t, relay.Client())
	var skips []cronlock.Reason
	hooks := cronlock.WithHooks(cronlock.Hooks{Skipped: func(s cronlock.Skip) { skips = append(skips, s.Reason) }})
	long := newBlocking()
	job := cronlock.Exclusive(locks.Mutex, "job", cronlock.FailOpen(), cronlock.WithLogger(quiet), hooks)(contextJob(long.run))
	relay.Refuse(true)
	relay.Reset()
	var running sync.WaitGroup
	running.Go(job.Run)
	receive(t, long.running, "the first run")
	job.Run()
	relay.Heal()
	job.Run()
	if want := []cronlock.Reason{cronlock.Overlapping, cronlock.Overlapping}; !slices.Equal(skips, want) {
		t.Errorf("skipped for %q, want %q", skips, want)
	}
	close(long.release)
	running.Wait()
}
