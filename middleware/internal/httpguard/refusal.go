package httpguard

import (
	"context"
	"errors"
)

// A guard that refuses a request tells the guards around it in the same process, whose runs are in the context: the
// handler behind it did not run, so there is nothing to record, whatever the status of the refusal. A later guard in the
// same runs that lets the request through takes that back.

const (
	notRefused = -1 // no guard inside has refused the request, or one has let it through since
	unsent     = -2 // one has refused it, and its answer is not known yet
)

// refusedInside tells all runs of ctx that a guard inside of them has refused the request.
func refusedInside(ctx context.Context) { tellRuns(ctx, unsent) }

// letThroughInside tells all runs of ctx that a guard inside of them has let the request through.
func letThroughInside(ctx context.Context) {
	unansweredInside(runFrom(ctx), Auto)
	tellRuns(ctx, notRefused)
}

func tellRuns(ctx context.Context, refusal int32) {
	for r := runFrom(ctx); r != nil; r = r.outer {
		r.refusal.Store(refusal)
	}
}

// RefusalSent notifies the runs of ctx that a guard inside of them has refused a request, and with which status; 0
// means that it has answered nothing. Adapters must call it after the refusal is written. It does nothing outside of a run.
// Why: a handler between two guards may answer in its own way after the inner guard has refused, and after work of its
// own. That answer counts as any other.
func RefusalSent(ctx context.Context, status int) { tellRuns(ctx, int32(status)) }

// refused reports whether an answer is the refusal of a guard inside this run: by its status, or as one that is left to
// something around, or was not given.
func (r *run) refused(status int, failed, unanswered bool) bool {
	switch sent := r.refusal.Load(); sent {
	case notRefused:
		return false
	case unsent:
		return true // by an adapter that does not tell
	case 0:
		return unanswered || failed
	default:
		return failed || status == int(sent)
	}
}

// refusedWith is refused for the failure that a handler has returned: see [FailureOf].
func (r *run) refusedWith(failure error) bool {
	if failure == nil {
		return false
	}
	var answered answeredError
	errors.As(failure, &answered)
	return r.refused(int(answered), errors.Is(failure, errReported), errors.Is(failure, errUnanswered))
}
