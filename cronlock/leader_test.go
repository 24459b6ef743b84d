package cronlock_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// candidate is a replica that campaigns until it is stopped.
type candidate struct {
	election *core.Election
	stop     func() // and waits for the end of the campaign
}

func newCandidate(t *testing.T, locks *core.Client) *candidate {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := &candidate{election: locks.Election("leader")}
	var campaign sync.WaitGroup
	campaign.Go(func() {
		err := c.election.Run(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		})
		if err != nil && ctx.Err() == nil {
			t.Errorf("campaign: %v", err)
		}
	})
	c.stop = func() { cancel(); campaign.Wait() }
	t.Cleanup(c.stop)
	return c
}

func (c *candidate) awaitLead(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, patience, "the lead", func() bool { return c.election.IsLeader(t.Context()) == nil })
}

// term is the term of the present leader.
func (c *candidate) term(t *testing.T) int64 {
	t.Helper()
	leader, err := c.election.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return leader.Term
}

// TestLeader: of three replicas that have a job each second, only the leader runs it. When it stops, the next one does.
func TestLeader(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	type ran struct {
		replica int
		term    int64
	}
	runs := make(chan ran, 1000)
	replicas := make([]*candidate, 3)
	var reported [3]*reports
	for i := range replicas {
		locks := newClient(t, server.Client())
		replicas[i], reported[i] = newCandidate(t, locks), reportsOf(locks)
		chain := cron.WithChain(cron.Recover(cron.DiscardLogger),
			cronlock.Leader(replicas[i].election))
		c := cron.New(cron.WithSeconds(), chain)
		if _, err := c.AddJob("* * * * * *", cronlock.JobFunc(func(ctx context.Context) error {
			term, _ := core.TokenFrom(ctx)
			runs <- ran{i, term}
			return nil
		})); err != nil {
			t.Fatal(err)
		}
		c.Start()
		t.Cleanup(func() { <-c.Stop().Done() })
	}
	seen := make(map[int]int64)
	for last := int64(0); len(seen) < len(replicas); {
		run := receive(t, runs, "a run of the leader")
		if term, known := seen[run.replica]; known && term != run.term || run.term < last {
			t.Fatalf("replica %d ran in term %d after %v", run.replica, run.term, seen)
		}
		if _, known := seen[run.replica]; !known {
			seen[run.replica], last = run.term, run.term
			if got := replicas[run.replica].term(t); got != run.term {
				t.Errorf("a run has token %d in term %d", run.term, got)
			}
			replicas[run.replica].stop() // no run follows here
		}
	}
	for i, r := range reported {
		testkit.Eventually(t, patience, "a tick to be skipped", func() bool { return len(r.reasons()) > 0 }) // all may have led at the same tick
		if all := slices.Compact(r.reasons()); len(all) != 1 || all[0] != cronlock.NotLeader {
			t.Errorf("replica %d skipped for %q", i, all)
		}
	}
}

// TestLeaderLoss force-releases a leader's lock during a run: its context ends, and the replica leads again only after the run.
func TestLeaderLoss(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	here := newCandidate(t, newClient(t, server.Client(), core.WithTTL(6*time.Second)))
	here.awaitLead(t)
	stubborn := make(chan struct{})
	running := make(chan context.Context, 1)
	job := cronlock.Leader(here.election)(cronlock.JobFunc(func(ctx context.Context) error {
		running <- ctx
		<-stubborn
		return nil
	}))
	var ticks sync.WaitGroup
	ticks.Go(job.Run)
	ctx := receive(t, running, "the run")
	if _, err := newClient(t, server.Client()).ForceUnlock(t.Context(), "leader"); err != nil {
		t.Fatal(err)
	}
	receive(t, ctx.Done(), "the end of the lead")
	if cause := context.Cause(ctx); !errors.Is(cause, core.ErrLeaseLost) {
		t.Errorf("the context ends with %v", cause)
	}
	if err := here.election.IsLeader(t.Context()); !errors.Is(err, core.ErrNotLeader) {
		t.Errorf("a leader while an old run goes on: %v", err)
	}
	close(stubborn)
	ticks.Wait()
	here.awaitLead(t)
}

// TestLeaderEnds: however a job ends, the replica continues leading. After the end of the jobs' context nothing runs.
func TestLeaderEnds(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	here, reported := newCandidate(t, locks), reportsOf(locks)
	here.awaitLead(t)
	ctx, cancel := context.WithCancel(t.Context())
	var panics counter
	for _, fn := range []func(context.Context) error{
		idle,
		func(context.Context) error { return errors.New("no paper") },
		func(context.Context) error { panic("no paper") },
		func(context.Context) error { runtime.Goexit(); return nil },
		func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) },
	} {
		wrapped := cron.NewChain(cron.Recover(&panics), cronlock.Leader(here.election,
			cronlock.WithTimeout(500*time.Millisecond))).Then(cronlock.JobFunc(fn))
		var tick sync.WaitGroup
		tick.Go(wrapped.Run)
		tick.Wait()
		here.awaitLead(t)
	}
	want := []cronlock.Outcome{
		cronlock.Success, cronlock.Failed, cronlock.Panicked, cronlock.Panicked, cronlock.TimedOut,
	}
	if ends := reported.outcomes(); !slices.Equal(ends, want) || panics.count() != 1 {
		t.Errorf("the runs ended as %q with %d panics, want %q with 1", ends, panics.count(), want)
	}
	cancel()
	cronlock.Leader(here.election, cronlock.WithContext(ctx))(
		cronlock.JobFunc(func(context.Context) error { t.Error("runs after the end"); return nil })).Run()
	reported.expect(t, len(want), cronlock.Stopped)
}

// TestLeaderRefuses what cannot be meant, as an error or a panic.
func TestLeaderRefuses(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	for want, e := range map[string]*core.Election{
		"election is nil": nil, "invalid name": locks.Election(""),
		"WithOwner": locks.Election("leader", core.WithOwner("me")),
	} {
		if _, err := cronlock.NewLeader(e); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", want, err)
		}
	}
	if _, err := cronlock.NewLeader(locks.Election("leader"), cronlock.WithTimeout(-1)); err == nil {
		t.Error("a wrong option is taken")
	}
	defer func() {
		if recover() == nil {
			t.Error("Leader does not panic")
		}
	}()
	cronlock.Leader(nil)
}

// TestJobFunc: without a wrapper of this package it is a job like any other, and gets a context all the same.
func TestJobFunc(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	tokens := 0
	job := cronlock.JobFunc(func(ctx context.Context) error {
		if _, ok := core.TokenFrom(ctx); ok {
			tokens++
		}
		return ctx.Err()
	})
	job.Run()
	if err := job.(interface{ RunContext(context.Context) error }).RunContext(t.Context()); err != nil || tokens != 0 {
		t.Errorf("error %v and %d tokens", err, tokens)
	}
	cronlock.Exclusive(locks.Mutex, "job")(job).Run()
	if tokens != 1 {
		t.Errorf("%d tokens, want that of the lock", tokens)
	}
}

// newLeaderReplica makes a replica whose job only the leader runs.
func newLeaderReplica(
	t *testing.T, locks *core.Client, fn func(context.Context) error, opts ...cronlock.Option,
) (*replica, *candidate) {
	t.Helper()
	c := newCandidate(t, locks)
	return newReplica(t, locks, fn, append(opts, cronlock.WithLeader(c.election))...), c
}

// TestTicksOfTheLeader: only the leader runs a tick, with the term as its token. When the leader changes, a replica whose
// clock is behind does not run the tick once more, and runs the next one.
func TestTicksOfTheLeader(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	tokens := make(chan int64, 10)
	job := func(ctx context.Context) error {
		token, _ := core.TokenFrom(ctx)
		if run, ok := cronlock.RunFrom(ctx); !ok || run.Token != token {
			t.Errorf("the token is %d, that of the run %d", token, run.Token)
		}
		tokens <- token
		return nil
	}
	first, leader := newLeaderReplica(t, newClient(t, server.Client()), job)
	leader.awaitLead(t)
	second, successor := newLeaderReplica(t, newClient(t, server.Client()), job)
	tick := time.Now().Truncate(time.Second)
	second.fire(tick)
	first.fire(tick)
	if token, term := receive(t, tokens, "a run"), leader.term(t); token != term {
		t.Errorf("the token is %d in term %d", token, term)
	}
	leader.stop()
	successor.awaitLead(t)
	second.fire(tick.Add(time.Millisecond))
	first.fire(tick.Add(time.Millisecond))
	if token, term := receive(t, tokens, "a run"), successor.term(t); token != term {
		t.Errorf("the token is %d in term %d", token, term)
	}
	first.expect(t, 1, cronlock.NotLeader)
	second.expect(t, 1, cronlock.NotLeader)
	expectOutcomes(t, second.locks, cronlock.Success, cronlock.Success)
}

// TestTickOfTwoLeaders: the first leader has run a tick. The next one, whose clock is behind, comes for the same tick.
func TestTickOfTwoLeaders(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	first, leader := newLeaderReplica(t, newClient(t, server.Client()), idle)
	leader.awaitLead(t)
	second, successor := newLeaderReplica(t, newClient(t, server.Client()), idle)
	tick := time.Now().Truncate(time.Second)
	first.fire(tick)
	leader.stop()
	successor.awaitLead(t)
	second.fire(tick)
	first.expect(t, 1)
	second.expect(t, 0, cronlock.Taken)
}

// TestLeadLostInARun: the context of the run ends, and the run is recorded as interrupted.
func TestLeadLostInARun(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	long := newBlocking()
	r, leader := newLeaderReplica(t, newClient(t, server.Client(), core.WithTTL(6*time.Second)), long.run)
	leader.awaitLead(t)
	wait := r.start(time.Now().Truncate(time.Second))
	ctx := receive(t, long.running, "the run")
	if _, err := newClient(t, server.Client()).ForceUnlock(t.Context(), "leader"); err != nil {
		t.Fatal(err)
	}
	receive(t, ctx.Done(), "the end of the lead")
	if cause := context.Cause(ctx); !errors.Is(cause, core.ErrLeaseLost) {
		t.Errorf("the context ends with %v", cause)
	}
	wait()
	expectOutcomes(t, r.locks, cronlock.Interrupted)
}

// TestLeadLostBeforeARun: a claimed tick waits for an earlier run, while the leader changes. It is given back, and the next
// leader may run it.
func TestLeadLostBeforeARun(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	first, leader := newLeaderReplica(t, newClient(t, server.Client()), idle, core.WithWait(time.Hour))
	leader.awaitLead(t)
	second, successor := newLeaderReplica(t, newClient(t, server.Client()), idle)
	earlier, err := second.locks.Mutex("cron:{job}").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tick := time.Now().Truncate(time.Second)
	wait := first.start(tick)
	testkit.Eventually(t, patience, "the tick to be claimed", func() bool {
		runs, err := cronlock.Job(second.locks, "job").History(t.Context())
		return err == nil && len(runs) == 1
	})
	leader.stop()
	successor.awaitLead(t)
	if err := earlier.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	wait()
	first.expect(t, 0, cronlock.NotLeader)
	second.fire(tick)
	second.expect(t, 1)
}

// TestLeaderWithoutRedis: with FailOpen, the leader runs a tick while its lease lasts, and no other replica does.
func TestLeaderWithoutRedis(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	tokens := make(chan int64, 10)
	job := func(ctx context.Context) error {
		token, _ := core.TokenFrom(ctx)
		tokens <- token
		return nil
	}
	opts := []cronlock.Option{cronlock.FailOpen(), cronlock.WithStartDeadline(time.Second)}
	locks := newClient(t, server.Client(), core.WithTTL(10*time.Minute))
	first, leader := newLeaderReplica(t, locks, job, opts...)
	leader.awaitLead(t)
	second, _ := newLeaderReplica(t, newClient(t, server.Client()), job, opts...)
	term := leader.term(t)
	server.Kill()
	tick := time.Now()
	second.fire(tick)
	first.fire(tick)
	if token := receive(t, tokens, "a run"); token != term {
		t.Errorf("the token is %d in term %d", token, term)
	}
	first.expect(t, 1)
	second.expect(t, 0, cronlock.NotLeader)
}

// TestRunNowOfTheLeader: elsewhere it is refused.
func TestRunNowOfTheLeader(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	first, leader := newLeaderReplica(t, newClient(t, server.Client()), idle)
	leader.awaitLead(t)
	second, _ := newLeaderReplica(t, newClient(t, server.Client()), idle)
	if err := cronlock.Job(first.locks, "job").Run(t.Context(), first.cron); err != nil {
		t.Errorf("on the leader: %v", err)
	}
	if err := cronlock.Job(second.locks, "job").Run(t.Context(), second.cron); !errors.Is(err, core.ErrNotLeader) {
		t.Errorf("elsewhere: %v", err)
	}
}
