package cronlock_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestFullRedisOpensNothing: FailOpen is for a Redis that does not answer, not for one that refuses.
func TestFullRedisOpensNothing(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	const deadline = 2 * time.Second
	r := newReplica(t, newClient(t, server.Client()), idle, cronlock.FailOpen(), cronlock.WithStartDeadline(deadline))
	if err := server.Client().ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	tick := time.Now()
	r.fire(tick)
	last := cronlock.Refused
	if slices.Contains(r.reasons(), cronlock.Late) && time.Since(tick) >= deadline {
		last = cronlock.Late // the last try has reached Redis after the deadline, which a slow machine can make it do
	}
	r.expect(t, 0, last)
}

// TestUnguardedRunsAreLogged: the first run without Redis leaves a line of level error, with the job and the reason.
func TestUnguardedRunsAreLogged(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	var ofTick, ofExclusive logBuffer
	locks := newClient(t, server.Client(), logTo(&ofExclusive))
	r := newReplica(t, newClient(t, server.Client(), logTo(&ofTick)), idle, cronlock.FailOpen(), cronlock.WithStartDeadline(100*time.Millisecond))
	server.Kill()
	r.fire(time.Now())
	r.expect(t, 1)
	ran := false
	exclusive := cronlock.Exclusive(locks.Mutex, "job", cronlock.FailOpen())
	exclusive(cron.FuncJob(func() { ran = true })).Run()
	if !ran {
		t.Error("Exclusive did not run the job")
	}
	const line = `level=ERROR msg="holdfast: Redis could not be asked, the work runs unguarded" place=cron label=job due=`
	for name, log := range map[string]string{"tick": ofTick.String(), "Exclusive": ofExclusive.String()} {
		if strings.Count(log, line) != 1 || !strings.Contains(log, "no answer from Redis") {
			t.Errorf("%s: log %q", name, log)
		}
	}
}

// TestShortWaitIsNoOutage: Redis answers after more than the whole wait that the lock is held. FailOpen opens nothing.
func TestShortWaitIsNoOutage(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	if _, err := newClient(t, server.Client()).Mutex("cron:job").Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	relay := server.Relay()
	relay.Delay(testkit.Both, 20*time.Millisecond)
	locks := newClient(t, relay.Client())
	for {
		var ran atomic.Bool
		began := time.Now()
		skips := runExclusive(locks, func() { ran.Store(true) }, core.WithWait(2*time.Millisecond))
		took := time.Since(began)
		switch {
		case !ran.Load() && slices.Equal(skips, []string{cronlock.Overlapping}):
			return
		case took < guard.AskTimeout: // a busy machine may take longer
			t.Fatalf("ran %v, skipped for %q, after %v", ran.Load(), skips, took)
		}
	}
}

// TestHeldAndThenSilent: Redis replied that the lock is held, and is silent for the rest of the wait. FailOpen opens
// nothing, because the other run still has the lock.
func TestHeldAndThenSilent(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	if _, err := newClient(t, server.Client()).Mutex("cron:job").Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	relay := server.Relay()
	locks := newClient(t, relay.Client(), core.WithHooks(core.Hooks{
		Wait: func(context.Context, core.Wait) { relay.Hold(testkit.Both) },
	}))
	t.Cleanup(relay.Heal) // so that the client can close soon
	ran := false
	skips := runExclusive(locks, func() { ran = true }, core.WithWait(3*time.Second))
	if ran || !slices.Equal(skips, []string{cronlock.Overlapping}) {
		t.Errorf("ran %v, skipped for %q", ran, skips)
	}
}

// runExclusive runs a job once behind a guard that fails open, and returns why it was skipped.
func runExclusive(locks *core.Client, fn func(), opts ...cronlock.Option) (skips []string) {
	cronlock.Exclusive(locks.Mutex, "job", append(opts, cronlock.FailOpen())...)(cron.FuncJob(fn)).Run()
	return skipsOf(locks, "job")
}

// TestTickHeldAndThenSilent: a claimed tick waits for the run of another one. Redis falls silent until the wait ends, or
// the tick may not start any more. FailOpen opens nothing.
func TestTickHeldAndThenSilent(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]cronlock.Option{
		"wait":     {core.WithWait(3 * time.Second)},
		"deadline": {core.WithWait(time.Minute), cronlock.WithStartDeadline(10 * time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testkit.Start(t)
			if _, err := newClient(t, server.Client()).Mutex("cron:{job}").Lock(t.Context()); err != nil {
				t.Fatal(err)
			}
			relay := server.Relay()
			locks := newClient(t, relay.Client(), core.WithHooks(core.Hooks{
				Wait: func(context.Context, core.Wait) { relay.Hold(testkit.Both) },
			}))
			t.Cleanup(relay.Heal) // so that the client can close soon
			r := newReplica(t, locks, idle, append(opts, cronlock.FailOpen())...)
			r.fire(time.Now().Truncate(time.Second))
			r.expect(t, 0, cronlock.Overlapping)
		})
	}
}

// TestPausedAndThenSilent: Redis replied that the job is paused, and is silent at the next tick. FailOpen opens nothing.
// It does so again once Redis replied that the job is resumed, and for a replica that has never had an answer.
func TestPausedAndThenSilent(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	operator := newClient(t, server.Client())
	opts := []cronlock.Option{cronlock.FailOpen(), cronlock.WithStartDeadline(3 * time.Second)}
	relay := server.Relay()
	t.Cleanup(relay.Heal) // so that the clients can close soon
	r := newReplica(t, newClient(t, relay.Client()), idle, opts...)
	if err := cronlock.Register(t.Context(), r.cron, "job"); err != nil {
		t.Fatal(err)
	}
	if err := cronlock.Job(operator, "job").Pause(t.Context(), "anna"); err != nil {
		t.Fatal(err)
	}
	r.fire(time.Now())
	r.expect(t, 0, cronlock.Paused)

	relay.Hold(testkit.Both)
	r.fire(time.Now())
	r.expect(t, 0, cronlock.Paused, cronlock.Paused)
	started := newReplica(t, newClient(t, relay.Client()), idle, opts...)
	started.fire(time.Now())
	started.expect(t, 1)

	relay.Heal()
	if err := cronlock.Job(operator, "job").Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.fire(time.Now().Add(time.Second))
	r.expect(t, 1, cronlock.Paused, cronlock.Paused)
	relay.Hold(testkit.Both)
	r.fire(time.Now())
	r.expect(t, 2, cronlock.Paused, cronlock.Paused)
}

// TestUnguardedTickDoesNotRunAgain: a tick that has run while Redis was stopped comes again when Redis continues, in its time. It
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
	long := newBlocking()
	job := cronlock.Exclusive(locks.Mutex, "job", cronlock.FailOpen())(contextJob(long.run))
	relay.Refuse(true)
	relay.Reset()
	var running sync.WaitGroup
	running.Go(job.Run)
	receive(t, long.running, "the first run")
	job.Run()
	relay.Heal()
	job.Run()
	if skips, want := skipsOf(locks, "job"), []string{cronlock.Overlapping, cronlock.Overlapping}; !slices.Equal(skips, want) {
		t.Errorf("skipped for %q, want %q", skips, want)
	}
	close(long.release)
	running.Wait()
}

// TestWrongClientOpensNothing: the client of one server leads to a Cluster, or to a replica. No job runs without its lock or its
// tick.
func TestWrongClientOpensNothing(t *testing.T) {
	t.Parallel()
	cluster := testkit.StartCluster(t, 3)
	master, replica := testkit.Start(t, testkit.TCP()), testkit.Start(t)
	replica.ReplicaOf(master.Addr())
	for name, server := range map[string]*testkit.Server{"Cluster": cluster.Masters[0], "Replica": replica} {
		t.Run(name, func(t *testing.T) {
			locks := newClient(t, server.Client())
			refused := 0
			for i := range 12 {
				job := fmt.Sprint("job", i)
				ran := 0
				exclusive := cronlock.Exclusive(locks.Mutex, job, cronlock.FailOpen())
				exclusive(cron.FuncJob(func() {
					ran++
					if _, err := newClient(t, cluster.Client()).Mutex("cron:" + job).TryLock(t.Context()); err == nil && name == "Cluster" {
						t.Error("the job runs without its lock")
					}
				})).Run()
				skipped := skipsOf(locks, job)
				if ran == 0 && !slices.Equal(skipped, []string{cronlock.Refused}) {
					t.Errorf("skipped: %v", skipped)
				}
				refused += len(skipped)
				if name == "Replica" && ran > 0 {
					t.Error("the job ran although no lock can be granted")
				}
			}
			if refused == 0 {
				t.Error("nothing was refused")
			}
		})
	}
	t.Run("Tick", func(t *testing.T) {
		r := newReplica(t, newClient(t, replica.Client(), core.WithLogger(nil)), idle, cronlock.FailOpen(), cronlock.WithStartDeadline(time.Hour))
		r.fire(time.Now()) // at once, not after the deadline
		r.expect(t, 0, cronlock.Refused)
	})
}
