package cronlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestRunKnowsItsDeadline: the function of a job can tell until when its tick may start, for what it tries again.
func TestRunKnowsItsDeadline(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	deadlines := make(chan time.Time, 1)
	tell := func(ctx context.Context) error {
		run, _ := cronlock.RunFrom(ctx)
		deadlines <- run.Deadline
		return nil
	}
	r := newReplica(t, locks, tell, cronlock.WithStartDeadline(time.Hour))
	tick := time.Now().Truncate(time.Second)
	r.fire(tick)
	if got := <-deadlines; got.Sub(tick.Add(time.Hour)).Abs() > patience {
		t.Errorf("deadline %v of tick %v, want an hour after it", got, tick)
	}
	wantNow(t, r.cron, t.Context())
	if got := <-deadlines; !got.IsZero() {
		t.Errorf("deadline %v, want none out of turn", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	wantNow(t, r.cron, ctx)
	if want, _ := ctx.Deadline(); want != <-deadlines {
		t.Error("not the deadline of the caller")
	}
	if past := history(t, locks); len(past) != 3 || !past[0].Deadline.IsZero() {
		t.Errorf("history %+v", past)
	}
}

func wantNow(t *testing.T, c *cron.Cron, ctx context.Context) {
	t.Helper()
	if err := cronlock.RunNow(ctx, c, "job"); err != nil {
		t.Error(err)
	}
}

// TestUnclaimedRunKnowsItsDeadline: so does one that began without Redis.
func TestUnclaimedRunKnowsItsDeadline(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := newClient(t, server.Client())
	deadlines := make(chan time.Time, 1)
	r := newReplica(t, locks, func(ctx context.Context) error {
		run, _ := cronlock.RunFrom(ctx)
		deadlines <- run.Deadline
		return nil
	}, cronlock.FailOpen(), cronlock.WithStartDeadline(100*time.Millisecond))
	server.Kill()
	tick := time.Now()
	r.fire(tick)
	if got := receive(t, deadlines, "the run"); !got.Equal(tick.Add(100 * time.Millisecond)) {
		t.Errorf("deadline %v of tick %v", got, tick)
	}
}
