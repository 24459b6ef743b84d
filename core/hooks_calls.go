package core

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
)

// Each method makes the struct of a hook only if the hook is set. Why: a clock that continues in a suspend is read by a
// system call.

// errHookPanics is the error that hooks get of a call that a panic of another hook has ended.
var errHookPanics = errors.New("holdfast: a hook panics")

// nowFor reads the clock if wanted is true, and returns 0 otherwise. Why: to read a clock that continues in a suspend is a
// system call.
func (e *engine) nowFor(wanted bool) keepalive.Instant {
	if !wanted {
		return 0
	}
	return e.now()
}

func (e *engine) acquireStarts(ctx context.Context, s script.Strategy, h *script.Hold, try bool) context.Context {
	if e.hooks.AcquireStart == nil {
		return ctx
	}
	return cmp.Or(e.hooks.AcquireStart(ctx, AcquireStart{
		Name: h.Name, Owner: h.Owner, Mode: modeOf(s), Permits: h.Permits, Limit: h.Limit, Try: try,
	}), ctx)
}

// acquireEnds calls the hook for the hold h of the acquisition, or of a member of its batch. parent is that of the hold.
// The token is 0 without a grant.
func (a *acquisition) acquireEnds(ctx context.Context, h *script.Hold, parent *holding, token int64, began keepalive.Instant, err error) {
	e := a.engine
	if e.hooks.AcquireEnd == nil {
		return
	}
	end := AcquireEnd{
		Name: h.Name, Owner: h.Owner, Mode: modeOf(a.Strategy), Permits: h.Permits, Limit: h.Limit,
		Token: token, Contended: a.Contended, Position: a.Position, Waited: e.now().Sub(began), Asked: a.Requests, Err: err,
	}
	if err == nil {
		end.TTL = min(h.TTL, a.grant.TTL) // a member of a batch may have less than the batch, and a grant by message less than the hold
		end.Reentered = parent != nil && (token == parent.token || token == parent.lease.token)
	} else {
		end.Holder, end.HolderInstance = a.Holder, e.directory.Instance(a.Holder)
	}
	e.hooks.AcquireEnd(ctx, end)
}

// Waiting implements acquire.Caller: it calls the Wait hook. A client that waits is one that others should know.
func (a *acquisition) Waiting(ctx context.Context, position int, holderTTL time.Duration) {
	e, h := a.engine, &a.Hold
	e.announcer.Touch(e.now(), h.TTL)
	instance := e.directory.Instance(a.Holder) // also without the hook, so that it is known if the wait lasts
	if e.hooks.Wait != nil {
		e.hooks.Wait(ctx, Wait{
			Name: h.Name, Owner: h.Owner, Mode: modeOf(a.Strategy), Permits: h.Permits, Limit: h.Limit,
			Position: position, RetryAfter: holderTTL, Holder: a.Holder, HolderInstance: instance,
		})
	}
}

// releaseStarts returns the context of the call, and that of ReleaseEnd. Without ReleaseStart the call keeps its own, because
// each value that it looks up in one of hooks would cost an allocation.
func (l *Lease) releaseStarts(ctx context.Context, left time.Duration) (call, end context.Context) {
	hooks, h := &l.engine.hooks, &l.hold
	if hooks.ReleaseStart == nil && hooks.ReleaseEnd == nil {
		return ctx, ctx
	}
	end = l.hookContext(ctx)
	if hooks.ReleaseStart == nil {
		return ctx, end
	}
	end = cmp.Or(hooks.ReleaseStart(end, ReleaseStart{
		Name: h.Name, Owner: h.Owner, Mode: modeOf(l.strategy), Permits: h.Permits, Limit: h.Limit,
		Token: l.token, Left: left,
	}), end)
	return end, end
}

func (l *Lease) releaseEnds(ctx context.Context, left time.Duration, err error) {
	hooks, h := &l.engine.hooks, &l.hold
	if hooks.ReleaseEnd != nil {
		hooks.ReleaseEnd(ctx, ReleaseEnd{
			Name: h.Name, Owner: h.Owner, Mode: modeOf(l.strategy), Permits: h.Permits, Limit: h.Limit,
			Token: l.token, Held: l.engine.now().Sub(l.entry.Granted), Left: left, Err: err,
		})
	}
}

func (e *engine) renewEnds(l *Lease, answer keepalive.Answer) {
	if h := &l.hold; e.hooks.Renewed != nil {
		e.recovered(func() {
			e.hooks.Renewed(l.hookContext(context.Background()), Renewed{
				Name: h.Name, Owner: h.Owner, Mode: modeOf(l.strategy), Permits: h.Permits, Limit: h.Limit,
				Token: l.token, TTL: h.TTL, Left: answer.Left, Took: answer.Took, Err: answer.Err,
			})
		})
	}
}

func (e *engine) loses(l *Lease, cause error) {
	if h := &l.hold; e.hooks.Lost != nil {
		e.recovered(func() {
			e.hooks.Lost(l.hookContext(context.Background()), Lost{
				Name: h.Name, Owner: h.Owner, Mode: modeOf(l.strategy), Permits: h.Permits, Limit: h.Limit,
				Token: l.token, Reason: lossReason(cause), Held: e.now().Sub(l.entry.Granted), Left: l.left(), Cause: cause,
			})
		})
	}
}

// beginEnds calls the hook for a begin that has returned err.
func (a *acquisition) beginEnds(ctx context.Context, began keepalive.Instant, err error) {
	e := a.engine
	if e.hooks.BeginEnd == nil {
		return
	}
	end := BeginEnd{
		Key: a.Hold.Name, Outcome: beginOutcome(err), Attempt: a.grant.Attempt, Token: a.grant.Token, TTL: a.grant.TTL,
		Contended: a.Contended, Waited: e.now().Sub(began), Asked: a.Requests, Err: err,
	}
	if end.Outcome == OutcomeInProgress {
		end.Holder, end.HolderInstance = a.Holder, e.directory.Instance(a.Holder)
	}
	e.hooks.BeginEnd(ctx, end)
}

// ends calls the hook for the end of an attempt. It adds to end what is known of the attempt.
func (a *Attempt) ends(ctx context.Context, outcome Outcome, end AttemptEnd) {
	e := a.once.client.engine
	if e.hooks.AttemptEnd == nil {
		return
	}
	end.Key, end.Attempt, end.Token = a.once.key, a.number, a.lease.token
	end.State = map[Outcome]State{OutcomeCompleted: StateCompleted, OutcomeHeld: StateUnknown}[outcome]
	end.Held = e.now().Sub(a.lease.entry.Granted)
	switch end.Outcome = outcome; {
	case errors.Is(end.Err, ErrStale):
		end.Outcome = OutcomeStale
	case end.Err != nil:
		end.Outcome = OutcomeUnconfirmed
	}
	e.hooks.AttemptEnd(a.lease.hookContext(ctx), end)
}

// left returns for how long the lease is valid without a renewal.
func (l *Lease) left() time.Duration {
	return max(0, l.engine.renewer.ValidUntil(&l.entry).Sub(l.engine.now()))
}

// lossReason returns the reason for metrics of the cause of a lost lease.
func lossReason(cause error) LossReason {
	for err, reason := range map[error]LossReason{
		errExpired: LossExpired, errRanOut: LossFixedTTL, errHeldTooLong: LossMaxHold, errGone: LossGone, errReplaced: LossReplaced,
		errAbandoned: LossAbandoned, ErrClosed: LossClosed,
	} {
		if errors.Is(cause, err) {
			return reason
		}
	}
	return LossTaken
}

// hookContext returns ctx with the values of the context that the lease was acquired with, and with its own.
func (l *Lease) hookContext(ctx context.Context) context.Context {
	return &acquiredContext{ctx, l.base.caller}
}

// acquiredContext is a context with the values of the one in which a lease was acquired.
type acquiredContext struct {
	context.Context
	acquired context.Context // but not its end and its cause, which package context finds by Value
}

func (c *acquiredContext) Value(key any) any {
	if value := context.WithoutCancel(c.acquired).Value(key); value != nil {
		return value
	}
	return c.Context.Value(key)
}

// beginOutcome returns the outcome of a begin that has returned err.
func beginOutcome(err error) Outcome {
	if err == nil {
		return OutcomeBegun
	}
	for sentinel, outcome := range map[error]Outcome{
		ErrCompleted: OutcomeReplayed, ErrInProgress: OutcomeInProgress, ErrFingerprintMismatch: OutcomeMismatch,
		ErrOutcomeUnknown: OutcomeUnknown, ErrTooManyKeys: OutcomeRefused, ErrOutsideWindow: OutcomeRefused,
	} {
		if errors.Is(err, sentinel) {
			return outcome
		}
	}
	return OutcomeFailed
}
