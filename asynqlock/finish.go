package asynqlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// ErrNotRecorded says that a task has taken effect, but Redis did not confirm its record in time. The guard
// acknowledges the task all the same, because a redelivery could repeat the effect, and retries the record in the
// background. It is the Err of a [core.Incident].
var ErrNotRecorded = errors.New("holdfast: asynqlock: the end of a run is not recorded")

// finish records how a run has ended, whatever asynq has done with the task meanwhile, and returns what to tell asynq.
func (r *run) finish(t *asynq.Task, returned bool, err error) error {
	held := time.Since(r.began)
	state := r.verdict(returned, err)
	verdict := err
	switch {
	case r.attempt != nil:
		verdict = r.record(state, returned, err)
	case state == core.StateCompleted:
		r.remember(state, returned)
		verdict = nil
	case state == core.StateUnknown:
		r.remember(state, returned)
		verdict = archived(err)
	}
	if state == core.StateUnknown {
		r.held()
	}
	if verdict == nil && returned {
		r.write(t, r.value())
	}
	r.ranFor(held, state, returned, cmp.Or(verdict, err)) // nothing else reports the error that core.Complete overrides
	return verdict
}

// verdict is what becomes of the record: what the handler itself has said, or what its end means. Nothing is recorded
// of a task that a guard behind this one has turned away, that has no handler, or that its handler revokes: asynq
// deletes it, so that nobody could find out for a record of unknown outcome.
func (r *run) verdict(returned bool, err error) core.State {
	_, idle := err.(idleError) // itself: what a handler makes of one is the handler's error
	nothing := idle || errors.Is(err, asynq.ErrHandlerNotFound) || errors.Is(err, asynq.RevokeTask)
	switch said, _ := r.word.Said(); {
	case said == seal.Completed, said == seal.Undecided && returned && err == nil:
		return core.StateCompleted
	case said == seal.Undecided && nothing:
		return core.StateNone
	case said == seal.Held, said == seal.Undecided && r.guard.FailurePolicy == core.HoldFailures:
		return core.StateUnknown
	}
	return core.StateNone
}

func (r *run) record(state core.State, returned bool, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), r.guard.FinishTimeout)
	defer cancel()
	lost := context.Cause(r.attempt.Context()) // before the end gives it one
	switch state {
	case core.StateCompleted:
		return r.completed(ctx, r.awaited(ctx, r.attempt.Complete(ctx, r.value())))
	case core.StateUnknown:
		failure := r.attempt.Hold(ctx, r.reason(returned))
		r.unconfirmed(failure)
		if failure == nil {
			r.recorded(state)
		}
		return archived(err)
	default:
		r.unconfirmed(r.attempt.Release(ctx))
	}
	if lost != nil && err != nil {
		r.failedIn("run", core.IncidentLost, lost)
		if errors.Is(err, asynq.RevokeTask) {
			return err // it does not come again
		}
		return r.deferral(joined(err, lost))
	}
	return err
}

// awaited gives a record that was not confirmed the rest of the time that it has. The attempt gives up soon if Redis
// refuses connections, and goes on in the background; asynq could not acknowledge the task meanwhile either.
func (r *run) awaited(ctx context.Context, err error) error {
	const pause = 100 * time.Millisecond
	for errors.Is(err, core.ErrUnavailable) && !errors.Is(err, core.ErrNotReplicated) { // of that, the master knows nothing
		record, failure := r.once().Peek(ctx)
		switch {
		case failure != nil:
		case record.Attempt > r.attempt.Number():
			return fmt.Errorf("%w: %w", core.ErrStale, err)
		case record.State == core.StateCompleted:
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
	return err
}

// completed judges the answer to the record of a run that has taken effect.
func (r *run) completed(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, core.ErrStale):
		r.failedIn("run", core.IncidentLost, err)
		if record, failure := r.once().Peek(ctx); failure == nil && record.State == core.StateCompleted {
			return nil
		}
		r.remember(core.StateCompleted, true)
		return r.deferral(err) // how the other attempt fares decides
	case err != nil && !errors.Is(err, core.ErrValueTooLarge):
		r.remember(core.StateCompleted, true)
		r.failedIn("finish", core.IncidentUnrecorded, fmt.Errorf("%w: %w", ErrNotRecorded, err))
	default:
		r.recorded(core.StateCompleted)
	}
	return nil
}

// unconfirmed tells of the end of a run that has not taken effect. There is nothing to lose: the lease runs out.
func (r *run) unconfirmed(err error) {
	if err != nil && !errors.Is(err, core.ErrStale) {
		r.failedIn("finish", core.IncidentUnrecorded, err)
	}
}

// archived returns the error with which asynq archives a task of unknown outcome. [core.Hold] outweighs [asynq.RevokeTask],
// for which asynq would delete the task, and with it what an operator needs for [Guard.Resolve] and [Guard.Forget].
func archived(err error) error {
	if errors.Is(err, asynq.RevokeTask) {
		err = errors.New(err.Error())
	}
	return joined(err, core.ErrOutcomeUnknown, asynq.SkipRetry)
}

// reason is what an operator reads in the record: what the handler has said, or how it ended.
func (r *run) reason(returned bool) string {
	if said, reason := r.word.Said(); said == seal.Held && reason != "" {
		return reason
	}
	if returned {
		return "the handler returned an error, or said so"
	}
	return "the handler did not return"
}

// joined returns an error that is all of errs, of which the first may be nil.
func joined(errs ...error) error {
	if errs[0] == nil {
		errs = errs[1:]
	}
	err := errs[0]
	for _, more := range errs[1:] {
		if !errors.Is(err, more) {
			err = fmt.Errorf("%w: %w", err, more)
		}
	}
	return err
}
