package cronlock

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
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
}

// latest is until when it may start.
func (t tick) latest() time.Time { return t.time.Add(t.deadline) }

// work describes a tick to hooks.
func (j *job) work(at time.Time) core.Work {
	w := core.Work{Place: "cron", Label: j.name, Due: at}
	if j.schedule != nil && !at.IsZero() {
		w.KeyHash = hashOf(tickKey(j.name, at))
	}
	return w
}

func hashOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
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
		j.hooks.NotRun(j.config.context, core.NotRun{Work: j.work(at), Reason: Late, Err: errPassedOver})
	}
}

// incident calls the hook for what is wrong with a tick. It may be on a goroutine that the scheduler has not started: no wrapper
// of the cron recovers a panic of the hook there.
func (j *job) incident(ctx context.Context, at time.Time, kind core.IncidentKind, err error) {
	defer func() {
		if r := recover(); r != nil {
			j.logger.Error("holdfast: cronlock: a hook panics", "job", j.shown(), "panic", r)
		}
	}()
	j.hooks.Incident(ctx, core.Incident{Work: j.work(at), Kind: kind, Err: err})
}
