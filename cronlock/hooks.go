package cronlock

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// Hooks are called with what becomes of ticks on this replica. Each may be nil. They run on the goroutine of the job,
// except Mismatched, Overrun, and Skipped for a tick that was watched, see [WithFailover]. A panic in these is logged.
// Later versions may add fields to the structs.
type Hooks struct {
	// Started is called before a run; the context is that of the run.
	Started func(ctx context.Context, run Run)
	// Finished is called after the run. The error is what the function returned.
	Finished func(ctx context.Context, run Run, err error)
	// Skipped is called for each tick that does not run here, even because it runs on another replica. A tick that
	// runs later after all, see [WithCatchUp], is reported twice.
	Skipped func(skip Skip)
	// Skewed is called at each tick at which the clock of this replica is off by more than half of [WithMaxSkew]. A
	// positive offset means ahead of the clock of Redis.
	Skewed func(offset time.Duration)
	// Mismatched is called when this replica finds that another service, or another schedule, uses the name of its job.
	Mismatched func(mismatch Mismatch)
	// Overrun is called for a run that continues after its [WithTimeout] and the whole [WithZombieGrace]. From then on
	// the job may run elsewhere.
	Overrun func(run Run)
}

// Reason is why a tick does not run here.
type Reason string

// The reasons.
const (
	Taken       Reason = "taken"       // it runs, or ran, on another replica
	Overlapping Reason = "overlapping" // an earlier run of the job is in progress
	Paused      Reason = "paused"      // the job is paused
	Early       Reason = "early"       // by the clock of Redis, this replica's clock is ahead
	Late        Reason = "late"        // its start deadline has passed, or the scheduler passed it over in a stall
	Unavailable Reason = "unavailable" // Redis did not answer until the start deadline
	Refused     Reason = "refused"     // Redis answered with an error until then, or with one that a retry does not resolve
	NotLeader   Reason = "not leader"  // another replica leads, or none does: see [WithLeader]
	Stopped     Reason = "stopped"     // the context of the jobs has ended, or the cron was stopped
)

// Skip is a tick that does not run here.
type Skip struct {
	// Job is the name of the job.
	Job    string
	Tick   time.Time
	Reason Reason
	// Err is the error behind it; it may be nil.
	Err error
}

func (j *job) skip(tick time.Time, reason Reason, err error) {
	level := slog.LevelWarn
	switch {
	case errors.Is(err, core.ErrOutcomeUnknown): // its runner has crashed, and nobody knows how far it came
	case reason == Taken, reason == NotLeader:
		level = slog.LevelDebug // the rule
	case reason == Paused, reason == Stopped:
		level = slog.LevelInfo // as somebody wanted it
	}
	j.config.logger.Log(context.Background(), level, "holdfast: cronlock: tick skipped",
		"job", j.shown(), "tick", tick, "reason", reason, "error", err)
	j.reportSkip(tick, reason, err)
}

func (j *job) reportSkip(tick time.Time, reason Reason, err error) {
	if j.config.hooks.Skipped != nil {
		j.config.hooks.Skipped(Skip{Job: j.name, Tick: tick, Reason: reason, Err: err})
	}
}

// warnOfUnguarded reports a run that begins without its lock or its record, because Redis could not be asked and the job
// fails open. Its level is above that of a skipped tick: other replicas may run the same tick.
func (j *job) warnOfUnguarded(tick time.Time, err error) {
	j.config.logger.Error("holdfast: cronlock: Redis could not be asked, the job runs unguarded", "job", j.shown(), "tick", tick,
		"error", err)
}

// aside calls a hook on a goroutine that the scheduler may not have started: no wrapper of the cron recovers a panic
// there.
func (j *job) aside(hook func()) {
	defer func() {
		if r := recover(); r != nil {
			j.config.logger.Error("holdfast: cronlock: a hook panics", "job", j.shown(), "panic", r)
		}
	}()
	hook()
}

// errPassedOver is behind a [Skip] of a tick for which nothing was asked of Redis.
var errPassedOver = errors.New("holdfast: cronlock: the scheduler passed over the tick")

// passOver reports ticks that the scheduler has passed over and that are too late.
func (j *job) passOver(due pending) {
	n := len(due.passed)
	if n == 0 {
		return
	}
	j.config.logger.Warn("holdfast: cronlock: ticks passed over", "job", j.shown(), "ticks", n, "more", due.more,
		"first", due.passed[0], "last", due.passed[n-1])
	for _, tick := range due.passed {
		j.reportSkip(tick, Late, errPassedOver)
	}
}
