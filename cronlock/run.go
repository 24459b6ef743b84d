package cronlock

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// Outcome is how a run ended.
type Outcome string

// The outcomes.
const (
	Running     Outcome = "running"
	Success     Outcome = "success"
	Failed      Outcome = "failed"      // the function returned an error
	Panicked    Outcome = "panicked"    // or called runtime.Goexit
	Interrupted Outcome = "interrupted" // it returned an error after its context had ended
	TimedOut    Outcome = "timed out"   // it returned an error after its [WithTimeout], or had not returned long after
	Lost        Outcome = "lost"        // its process crashed or became unreachable
	Unknown     Outcome = "unknown"     // the function called [core.Hold]
	Skipped     Outcome = "skipped"     // it was claimed but did not begin: an earlier run was in progress
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
	Undecided   = "undecided"   // the proof could not be asked until then, [core.ErrUndecided]
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

// Run is one execution of a job.
type Run struct {
	// Job is the name of the job.
	Job string
	// Tick is the time on the schedule. For [JobHandle.Run] it is the time of that call.
	Tick time.Time
	// Replica is the name of the replica that runs it, see [core.WithInstance].
	Replica string
	// Service is the service of that replica, see [WithService].
	Service string
	// Attempt counts the executions of this tick, from 1. Only [WithFailover] makes it greater.
	Attempt int
	// Token is the fencing token that [core.TokenFrom] finds in the context. It is greater than the token of every run of
	// the job that began before, of this tick or another one. With [AllowOverlap] it is greater than the tokens of earlier
	// runs of this tick only. With [WithLeader] it is the term, the same for all runs of one leader. It is 0 in
	// [JobHandle.History] if the end of the run was not recorded, and if the run began without Redis, see [FailOpen].
	Token int64
	// Started is when the tick was claimed, by the clock of Redis; Took is the duration of the run.
	Started time.Time
	Took    time.Duration
	// Deadline is the time until which the tick may start, by the clock of this replica: see [WithStartDeadline] and
	// [WithCatchUp]. It is zero in [JobHandle.History], and for [JobHandle.Run] without a deadline.
	Deadline time.Time
	// Outcome is how the run ended, or [Running].
	Outcome Outcome
}

// newRun describes a run of this replica that has neither a claim nor a token yet.
func (j *job) newRun(at time.Time) Run {
	return Run{Job: j.name, Tick: at, Replica: j.replica, Service: j.config.service}
}

type runKey struct{}

// withRun returns the context of a run, in which hooks find its outcome at the end.
func withRun(ctx context.Context, live *atomic.Pointer[Run]) context.Context {
	return context.WithValue(ctx, runKey{}, live)
}

// RunFrom returns the run whose context ctx is or descends from. It returns false if there is none. The tick and job
// of a run make a key that identifies its effects.
func RunFrom(ctx context.Context) (Run, bool) {
	live, ok := ctx.Value(runKey{}).(*atomic.Pointer[Run])
	if !ok {
		return Run{}, false
	}
	return *live.Load(), true
}

// result is what is recorded of a run.
type result struct {
	Outcome Outcome       `json:"outcome"`
	Tick    time.Time     `json:"tick"`
	Took    time.Duration `json:"took"`
	Token   int64         `json:"token"`
}

// value is what the guard records of the run.
func (r Run) value() ([]byte, error) { return json.Marshal(result{r.Outcome, r.Tick, r.Took, r.Token}) }

// givenUp is the reason in the record of a tick of which no attempt was finished.
const givenUp = "given up after too many attempts"

// runOf reads a run from its record.
func runOf(job string, tick time.Time, r core.Record) Run {
	run := Run{Job: job, Tick: tick, Attempt: r.Attempt, Started: r.Began, Outcome: Lost}
	run.Replica = r.Instance
	run.Service, _ = readNote(r.Note)
	var recorded result
	switch {
	case r.State == core.StateRunning:
		run.Outcome = Running
	case r.State == core.StateUnknown && r.Reason != "" && r.Reason != givenUp:
		run.Outcome = Unknown
	case r.State == core.StateCompleted && json.Unmarshal(r.Value, &recorded) == nil:
		run.Outcome, run.Took, run.Token = recorded.Outcome, recorded.Took, recorded.Token
		if !recorded.Tick.IsZero() {
			run.Tick = recorded.Tick
		}
	}
	return run
}
