package cronlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// takeover is two replicas with failover, of which the first runs a tick that the second one watches.
type takeover struct {
	tick   time.Time
	runner *replica
	long   *blocking
	ended  func() // waits for the runner
	heir   *replica
}

func newTakeover(t *testing.T, server *testkit.Server, chain cron.Chain, fn func(context.Context) error) *takeover {
	t.Helper()
	o := &takeover{tick: time.Now().Truncate(time.Second), long: newBlocking()}
	o.runner = newReplica(t, newClient(t, server.Client()), o.long.run, cronlock.WithFailover(2))
	o.ended = o.runner.start(o.tick)
	receive(t, o.long.running, "the first run")
	waits := make(chan struct{}, 1)
	hooks := core.WithHooks(core.Hooks{Wait: func(context.Context, core.Wait) {
		select {
		case waits <- struct{}{}:
		default:
		}
	}})
	o.heir = &replica{cron: cron.New(cron.WithChain(chain.Then)), locks: newClient(t, server.Client(), hooks)}
	o.heir.add(t, after(time.Hour), fn, cronlock.WithFailover(2))
	o.heir.cron.Start()
	o.heir.fire(o.tick)
	receive(t, waits, "the other one watches")
	return o
}

// TestStopDoesNotWaitForOthers: a cron that is stopped does not wait for the runs of other replicas, and takes none
// over. What it obtains all the same it leaves to another replica, as if it had never had it.
func TestStopDoesNotWaitForOthers(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	o := newTakeover(t, server, cron.NewChain(), idle)
	<-o.heir.cron.Stop().Done()
	expire(t, server.Client())
	testkit.Eventually(t, patience, "the stopped one has given the tick back", func() bool {
		return len(o.heir.reasons()) > 0
	})
	o.heir.expect(t, 0, cronlock.Stopped)
	third := newReplica(t, newClient(t, server.Client()), idle, cronlock.WithFailover(2))
	third.fire(o.tick)
	third.expect(t, 1)
	if runs := third.runs(); len(runs) == 1 && runs[0].Attempt != 2 {
		t.Errorf("attempt %d, want 2", runs[0].Attempt)
	}
	close(o.long.release)
	o.ended()
}

// TestTakeoverIsARun of the scheduler: its wrappers see it, and Stop waits for it.
func TestTakeoverIsARun(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	var panics counter
	begun, release := make(chan struct{}), make(chan struct{})
	o := newTakeover(t, server, cron.NewChain(cron.Recover(&panics)), func(context.Context) error {
		close(begun)
		<-release
		panic("no paper")
	})
	expire(t, server.Client())
	receive(t, begun, "the second run")
	stopped := o.heir.cron.Stop().Done()
	select {
	case <-stopped:
		t.Error("the cron has stopped during the run")
	default:
	}
	close(release)
	receive(t, stopped, "the cron to stop")
	o.heir.expect(t, 1)
	if n := panics.count(); n != 1 {
		t.Errorf("%d panics reached the wrappers, want 1", n)
	}
	close(o.long.release)
	o.ended()
}

// TestUnfinishedTick: a replica that begins takes over a tick that nobody watches any more, whether its runner has
// died, dies afterwards, or has given it back.
func TestUnfinishedTick(t *testing.T) {
	t.Parallel()
	const deadline = time.Hour
	ticks := at(time.Now().Truncate(time.Second).Add(-time.Minute), time.Now().Add(time.Hour))
	tick := ticks(time.Time{})
	for name, test := range map[string]struct {
		before, after func(t *testing.T, server *testkit.Server, stop func())
	}{
		"dead":        {before: func(t *testing.T, s *testkit.Server, _ func()) { expire(t, s.Client()) }},
		"dies":        {after: func(t *testing.T, s *testkit.Server, _ func()) { expire(t, s.Client()) }},
		"interrupted": {before: func(_ *testing.T, _ *testkit.Server, stop func()) { stop() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testkit.Start(t)
			options := []cronlock.Option{cronlock.WithFailover(2), cronlock.WithStartDeadline(deadline)}
			ctx, stop := context.WithCancelCause(t.Context())
			long := newBlocking()
			a := &replica{cron: cron.New(), locks: newClient(t, server.Client())}
			a.add(t, ticks, long.run, append(options, cronlock.WithContext(ctx))...)
			ended := a.start(tick)
			receive(t, long.running, "the first run")
			end := func() { stop(errors.New("shutdown")); ended() }
			if test.before != nil {
				test.before(t, server, end)
			}
			watches := make(chan struct{}, 100)
			hooks := core.WithHooks(core.Hooks{Wait: func(context.Context, core.Wait) { watches <- struct{}{} }})
			b := &replica{cron: cron.New(), locks: newClient(t, server.Client(), hooks)}
			b.add(t, ticks, idle, options...)
			b.cron.Start()
			if test.after != nil {
				receive(t, watches, "the tick is watched")
				test.after(t, server, end)
			}
			testkit.Eventually(t, patience, "the tick is taken over", func() bool { return len(b.runs()) > 0 })
			if run := b.runs()[0]; run.Attempt != 2 || !run.Tick.Equal(tick) {
				t.Errorf("run %+v", run)
			}
			<-b.cron.Stop().Done()
			end()
		})
	}
}

// TestFinishedTicksAreLeft alone by a replica that begins, and so are those without failover.
func TestFinishedTicksAreLeft(t *testing.T) {
	t.Parallel()
	for _, attempts := range []int{1, 2} {
		server := testkit.Start(t)
		ticks := at(time.Now().Truncate(time.Second).Add(-time.Minute), time.Now().Add(time.Hour))
		options := []cronlock.Option{cronlock.WithFailover(attempts), cronlock.WithStartDeadline(time.Hour)}
		a := &replica{cron: cron.New(), locks: newClient(t, server.Client())}
		b := &replica{cron: cron.New(), locks: newClient(t, server.Client())}
		long := newBlocking()
		if attempts > 1 {
			close(long.release)
		}
		a.add(t, ticks, long.run, options...)
		b.add(t, ticks, idle, options...)
		ended := a.start(ticks(time.Time{}))
		receive(t, long.running, "the run")
		if attempts > 1 {
			ended()
		} else {
			expire(t, server.Client())
		}
		begin(t, b)
		b.expect(t, 0)
		if attempts == 1 {
			close(long.release)
			ended()
		}
	}
}
