package cronlock

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// The reasons of [core.NotRun] for a tick that does not run here.
const (
	Taken       = "taken"       // it runs, or ran, on another replica
	Overlapping = "overlapping" // an earlier run of the job is in progress
	Paused      = "paused"      // the job is paused
	Early       = "early"       // by the clock of Redis, this replica's clock is ahead
	Late        = "late"        // its start deadline has passed, or the scheduler passed it over in a stall
	Unavailable = "unavailable" // Redis did not answer until the start deadline
	Refused     = "refused"     // Redis answered with an error until then, or with one that a retry does not resolve
	NotLeader   = "not leader"  // another replica leads, or none does: see [WithLeader]
	Stopped     = "stopped"     // the context of the jobs has ended, or the job was removed
)

// The kinds of [core.Incident] that only jobs have. They are no faults of a run.
const (
	// IncidentSkew is a tick at which the clock of this replica is off by more than half of [WithMaxSkew].
	IncidentSkew core.IncidentKind = "skew"
	// IncidentMismatch is another service, or another schedule, that uses the name of the job.
	IncidentMismatch core.IncidentKind = "mismatch"
)

// tick is a tick that this replica handles.
type tick struct {
	time     time.Time     // on the schedule
	deadline time.Duration // how late it may start
	came     time.Time     // when this replica began to handle it
}

func newTick(at time.Time, deadline time.Duration) tick { return tick{at, deadline, time.Now()} }

// work describes a tick to hooks.
func (j *job) work(at time.Time) core.Work {
	w := core.Work{Place: "cron", Label: j.name, Due: at}
	if j.schedule != nil && !at.IsZero() {
		sum := sha256.Sum256([]byte(tickKey(j.name, at)))
		w.KeyHash = hex.EncodeToString(sum[:]) // as core.KeyHash in the run
	}
	return w
}

// skip reports a tick that does not run here.
func (j *job) skip(t tick, reason string, err error) {
	level := slog.LevelWarn
	switch {
	case errors.Is(err, core.ErrOutcomeUnknown): // its runner has crashed, and nobody knows how far it came
	case reason == Taken, reason == NotLeader:
		level = slog.LevelDebug // the rule
	case reason == Paused, reason == Stopped:
		level = slog.LevelInfo // as somebody wanted it
	}
	j.logger.Log(context.Background(), level, "holdfast: cronlock: tick skipped",
		"job", j.shown(), "tick", t.time, "reason", reason, "error", err)
	j.notRun(t, reason, err)
}

func (j *job) notRun(t tick, reason string, err error) {
	j.hooks.NotRun(j.config.context, core.NotRun{Work: j.work(t.time), Reason: reason, Waited: time.Since(t.came), Err: err})
}

// errPassedOver is the error of a tick for which nothing was asked of Redis.
var errPassedOver = errors.New("holdfast: cronlock: the scheduler passed over the tick")

// passOver reports ticks that the scheduler has passed over and that are too late.
func (j *job) passOver(due pending) {
	n := len(due.passed)
	if n == 0 {
		return
	}
	j.logger.Warn("holdfast: cronlock: ticks passed over", "job", j.shown(), "ticks", n, "more", due.more,
		"first", due.passed[0], "last", due.passed[n-1])
	for _, at := range due.passed {
		j.notRun(newTick(at, 0), Late, errPassedOver)
	}
}

// incident calls the hook for what went wrong with a tick.
func (j *job) incident(ctx context.Context, at time.Time, kind core.IncidentKind, err error) {
	j.hooks.Incident(ctx, core.Incident{Work: j.work(at), Kind: kind, Err: err})
}

// incidentAside does so on a goroutine that the scheduler may not have started: no wrapper of the cron recovers a panic of
// the hook there.
func (j *job) incidentAside(ctx context.Context, at time.Time, kind core.IncidentKind, err error) {
	defer func() {
		if r := recover(); r != nil {
			j.logger.Error("holdfast: cronlock: a hook panics", "job", j.shown(), "panic", r)
		}
	}()
	j.incident(ctx, at, kind, err)
}

// warnOfUnguarded reports a run that begins without its lock or its record, because Redis could not be asked and the job
// fails open. Its level is above that of a skipped tick: other replicas may run the same tick.
func (j *job) warnOfUnguarded(ctx context.Context, at time.Time, err error) {
	j.logger.Error("holdfast: cronlock: Redis could not be asked, the job runs unguarded", "job", j.shown(), "tick", at, "error", err)
	j.incident(ctx, at, core.IncidentUnguarded, err)
}

// warnUnrecorded reports a run whose end may not be recorded, and does nothing without an error.
func (j *job) warnUnrecorded(ctx context.Context, at time.Time, err error) {
	if err != nil {
		j.logger.Warn("holdfast: cronlock: run not recorded", "job", j.shown(), "tick", at, "error", err)
		j.incidentAside(ctx, at, core.IncidentUnrecorded, err)
	}
}

// warnOfOverrun reports a run that goes on although its lease is not renewed any more.
func (j *job) warnOfOverrun(run Run) {
	j.logger.Warn("holdfast: cronlock: a run continues long after its WithTimeout, and the next one may start "+
		"beside it on another replica", "job", j.shown(), "tick", run.Tick)
	run.Outcome = TimedOut
	j.incidentAside(withRun(context.Background(), run), run.Tick, core.IncidentOverrun, ErrTimeout)
}
