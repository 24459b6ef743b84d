package asynqlock

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/outage"
)

// question is what the memory of the guard is asked about the task.
func (v *visit) question() outage.Question {
	return outage.Question{Key: v.hash, Lock: v.lock, Fingerprint: v.fingerprint}
}

// remember notes for other tasks of the key what Redis has said, if the guard fails open.
func (v *visit) remember(busy error) {
	if v.guard.FailOpen {
		v.guard.memory.Refused(v.hash, busy)
	}
}

// known returns the reason why a task must not run in an outage, although its guard fails open: another task of the key runs
// in this process, or had a lease when Redis last answered. It is a [core.CompletedError] if one has taken effect here, and is
// not recorded. It returns nil if none is known of.
//
// Why: asynq redelivers a deferred task within seconds, so an outage of that length would let it run beside the task that
// was in its way.
func (v *visit) known(unavailable error) error {
	if v.within() {
		return nil
	}
	return v.guard.memory.Known(v.question(), unavailable)
}

// unrecorded returns the reason why a task must not run although Redis may grant its key: another task of the key runs here, or
// has run, without Redis.
func (v *visit) unrecorded() error {
	if !v.guard.FailOpen || v.within() {
		return nil
	}
	return v.guard.memory.Unrecorded(v.question())
}

// open notes a task that runs without Redis, unless another one is known of: then the error says so. end must be called when
// the task has ended.
func (v *visit) open(unavailable error) (end func(), err error) {
	if v.within() {
		return func() {}, nil
	}
	return v.guard.memory.Enter(v.question(), unavailable)
}

// granted notes a task for which Redis has granted the key, if the guard fails open. end must be called when it has ended. The
// error is that of unrecorded.
func (v *visit) granted() (end func(), err error) {
	if !v.guard.FailOpen || v.within() {
		return func() {}, nil
	}
	return v.guard.memory.Granted(v.question())
}

// remember notes the end of a run of Once that Redis may have no record of. That of a run without Redis is recorded when Redis
// is back.
func (r *run) remember(state core.State, returned bool) {
	v := r.visit
	if !v.guard.FailOpen {
		return
	}
	e := outage.End{
		State: state, Fingerprint: v.fingerprint, Note: note(v.task), Until: time.Now().Add(v.guard.Retention),
	}
	if state == core.StateUnknown {
		e.Reason = r.reason(returned)
	} else {
		e.Value = r.value()
	}
	if r.attempt == nil {
		e.Once = func(retention time.Duration) *core.Once { return r.once(core.WithRetention(retention)) }
		e.Failed = func(err error) {
			v.warn(logGuardFailed, "finish", "operation", "finish", "error", fmt.Errorf("%w: %w", ErrNotRecorded, err))
		}
	}
	v.guard.memory.Ended(v.hash, e)
}

// recorded notes the end of a run of Once of which Redis has a record.
func (r *run) recorded(state core.State) {
	if g := r.visit.guard; g.FailOpen {
		g.memory.Recorded(r.visit.hash, state, g.Retention)
	}
}

// within reports whether the task comes from a run of this guard and key, which is no other task.
func (v *visit) within() bool {
	for r := runFrom(v.ctx); r != nil; r = r.around {
		if r.guard == v.guard && r.hash == v.hash {
			return true
		}
	}
	return false
}
