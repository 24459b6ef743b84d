package cronlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

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
	first, leader := newLeaderReplica(t, newClient(t, server.Client()), idle, cronlock.WithWait(time.Hour))
	leader.awaitLead(t)
	second, successor := newLeaderReplica(t, newClient(t, server.Client()), idle)
	earlier, err := second.locks.Mutex("cron:{job}").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tick := time.Now().Truncate(time.Second)
	wait := first.start(tick)
	testkit.Eventually(t, patience, "the tick to be claimed", func() bool {
		runs, err := cronlock.History(t.Context(), second.locks, "job")
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
	if err := cronlock.RunNow(t.Context(), first.cron, "job"); err != nil {
		t.Errorf("on the leader: %v", err)
	}
	if err := cronlock.RunNow(t.Context(), second.cron, "job"); !errors.Is(err, core.ErrNotLeader) {
		t.Errorf("elsewhere: %v", err)
	}
}
