package acquire

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// ask sends the request until it is answered. It returns nil after a grant that the caller has accepted, and errBusy if
// another owner has the lock. Other errors end the acquisition. The hold may have another ID afterwards.
//
// The outage counts on from one ask to the next, because only an answer ends it. A call that does not wait gets few
// tries. While a slot of a Cluster migrates, the limit of outages does not count. Why: Redis answers, and the
// refusals end with the migration.
//
// A waiting call also endures answers that no Redis gives, for as long as an outage. A proxy may give one in passing. If they do
// not end, the last one is the error of the call.
func (a *Acquisition) ask(ctx context.Context) error {
	patience := transport.OutageLimit
	if a.Wait == 0 {
		patience = 0
	}
	for {
		err := a.request(ctx)
		if err == nil || err == errBusy {
			return err
		}
		if _, refused := err.(*RefusedError); refused {
			return err
		}
		switch {
		case a.Env.timeUp(ctx):
			return ErrTimeUp
		case a.Wait == 0 && transport.Unacknowledged(err):
			return &UnavailableError{err} // the replicas have had the time of WAIT already
		case !transport.Transient(err) && (a.Wait == 0 || !transport.Unrecognized(err)):
			return &FailedError{err}
		}
		longest := transport.MaxRequestRetryInterval
		if transport.SlotMigrating(err) && patience > 0 {
			a.outage.Began, longest = time.Now(), transport.MaxMigrationRetryInterval // so the limit never passes
		}
		pause, again := a.outage.Pause(patience, longest)
		if !again && transport.Transient(err) {
			return &UnavailableError{err}
		}
		if !again {
			return &FailedError{err}
		}
		keepalive.Pause(ctx, pause, nil, a.Env.Operations.Closing)
		if a.Env.timeUp(ctx) {
			return ErrTimeUp
		}
	}
}

// request sends the request once. It returns nil after a grant that the caller has accepted, errBusy, a *RefusedError, or
// the error of the request. The hold may have another ID afterwards.
func (a *Acquisition) request(ctx context.Context) error {
	a.Requests++
	a.dropParents(ctx, hasEnded)
	a.sentAt = a.Env.Now()
	want := a.want
	want.Place = want.Place && !a.ForeignParent
	result, err := a.Strategy.Acquire(ctx, &a.Hold, want)
	a.record(err)
	if err != nil {
		return err
	}
	a.Answered, a.unregistered = true, result.Unregistered
	a.Hold.Stored = a.Hold.Stored || result.Granted || a.want.Place
	switch {
	case result.Granted:
		return a.accept(ctx, result.Grant)
	case result.HoldReleased:
		a.replaceHold(ctx, errHoldReleased)
		return a.LastErr
	}
	a.outage = transport.Outage{}
	if result.Refused != nil {
		return &RefusedError{result.Refused}
	}
	if a.ForeignParent {
		a.leaveForeignParent(ctx)
		return a.request(ctx)
	}
	a.WaitState, a.Contended = result.WaitState, true
	return errBusy
}

// record notes the outcome of a request: whether Redis can have granted the hold without an answer, and why there was none.
// An error that is only the end of the wait does not replace Outage. Why: what was wrong before tells more.
func (a *Acquisition) record(err error) {
	a.LastErr = err
	if err == nil || !WaitEnded(err) {
		a.Outage = err
	}
	if err != nil && transport.MayHaveRun(err) {
		a.Hold.Unanswered++
	}
	a.uncertain = a.uncertain || a.Hold.Unanswered > 0
}

// accept hands a grant to the caller. If the caller refuses it as too late, the hold is replaced and the error returned.
//
// Validity counts from when the request was sent that was granted. A Redlock says when that was, because its rounds before
// do not count.
func (a *Acquisition) accept(ctx context.Context, granted script.Grant) error {
	a.sentAt = max(a.sentAt, granted.SentAt)
	granted.SentAt, granted.TTL, a.Hold.Slot = a.sentAt, a.Hold.TTL, granted.Slot
	if err := a.Caller.Accept(a.ctx, &a.Hold, granted); err != nil {
		a.replaceHold(ctx, ErrTooLate)
		return a.LastErr
	}
	a.markAccepted()
	return nil
}

// markAccepted records that the caller has a lease of the hold. It has Redis refuse the requests of the hold that arrive later.
//
// Why Bar, although a release would have the same effect:
//
//  1. A request has no answer, and is still on its way. Its repetition is granted.
//  2. The process crashes, so there is no release. The TTL expires.
//  3. The first request arrives, and takes the lock for a caller that does not exist.
//
// After Bar, Redis refuses the request in step 3.
func (a *Acquisition) markAccepted() {
	a.accepted = true
	if a.Hold.Unanswered > 0 {
		a.Strategy.Bar(&a.Hold)
	}
}

// replaceHold releases the hold and continues with a new hold ID. The release comes first because the old hold would make
// Redis refuse the next request. If the release is not confirmed, it is sent again in the background. LastErr becomes
// reason.
//
// An owner that is named after the hold changes with it. Other owners stay: that of a re-entry, and a named one.
func (a *Acquisition) replaceHold(ctx context.Context, reason error) {
	a.LastErr = reason
	abandoned := a.Hold // a copy: a Redlock may still release it on some servers after Release has returned
	if _, err := a.Strategy.Release(ctx, &abandoned, script.NeverHeld); err != nil {
		a.Env.ReleaseInBackground(a.Strategy, &abandoned, script.NeverHeld)
	}
	own := a.Hold.Owner == a.Hold.ID
	if a.Env.IDs.Renew(&a.Hold); own {
		a.Hold.Owner = a.Hold.ID
	}
	if a.call != nil {
		a.Env.Calls.update(a.call, a.Hold.Owner, nil)
	}
}
