package core

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
)

// Hooks are functions for tracing, metrics and audit. Each may be nil. They run on the goroutine that does the work,
// so they must be fast and must not block. A panic reaches the caller, and no lock stays behind; after one in ReleaseStart the
// release is tried in the background. Renewed and Lost mostly run on a goroutine of the client, so a panic in
// them is only logged. A hook must not call [runtime.Goexit], as t.Fatal of a test does: in these two it also ends the work for
// other leases of the client. Hooks of different leases run concurrently. Later versions may add fields to the structs. Hooks
// get names of locks in plain text: take care where you write them.
//
// # Contexts
//
// The context of every hook has the values of the context that AcquireStart returned for that acquisition, or BeginStart
// for that attempt. So a hook finds there what it has put into it. In addition:
//
//   - AcquireStart and BeginStart get the context of the call. What they return is used for the call, and is the parent
//     of the lease's context.
//   - ReleaseStart, ReleaseEnd and AttemptEnd get a context that ends with the context of the call. It has the values of that
//     context too, except those with the same key. What ReleaseStart returns is used for the call, and given to
//     ReleaseEnd.
//   - The contexts of Renewed and Lost have neither an end nor a deadline.
//   - RunStart and NotRun get the context of the request, the tick or the task. RunEnd and Incident get the context of the run,
//     or a context with its values.
//
// A hook that returns a nil context leaves the call its own.
//
// # Leases now
//
// The number of leases that a client holds can be counted. Add 1 for each AcquireEnd and BeginEnd without an error.
// Subtract 1 for each Lost, for each ReleaseEnd unless its error is [ErrNotHeld], and for each AttemptEnd without
// LeaseLost. A [Multi] counts as its members, and a re-entry as one more lease.
type Hooks struct {
	// AcquireStart is called when Lock or TryLock begins.
	AcquireStart func(ctx context.Context, start AcquireStart) context.Context
	// Wait is called when Lock has found the lock held, or other waiters in the queue, and begins to wait. It is also
	// called for a [Once] with [WithWait].
	Wait func(ctx context.Context, wait Wait)
	// AcquireEnd is called when Lock or TryLock returns.
	AcquireEnd func(ctx context.Context, end AcquireEnd)
	// ReleaseStart is called when Unlock begins.
	ReleaseStart func(ctx context.Context, start ReleaseStart) context.Context
	// ReleaseEnd is called when Unlock returns.
	ReleaseEnd func(ctx context.Context, end ReleaseEnd)
	// BeginStart is called when [Once.Begin] or [Once.Do] begins.
	BeginStart func(ctx context.Context, start BeginStart) context.Context
	// BeginEnd is called when Begin returns, or when Do has claimed the key or failed to.
	BeginEnd func(ctx context.Context, end BeginEnd)
	// AttemptEnd is called when an attempt was completed, released or held, or when that has failed.
	AttemptEnd func(ctx context.Context, end AttemptEnd)
	// Renewed is called when a renewal has been answered, or has failed. It is not called if the answer is that the lease
	// is lost.
	Renewed func(ctx context.Context, renewed Renewed)
	// Lost is called once for every lease that ends without Unlock. The lease of an attempt of a [Once] counts too; its
	// Name is the key. [Client.Close] loses the leases that it ends, with the reason [LossClosed].
	Lost func(ctx context.Context, lost Lost)
	// ProofAsked is called when [WithProof] has asked its proof about a key, and when the transaction of a run has found that an
	// earlier one has committed.
	ProofAsked func(ctx context.Context, asked ProofAsked)
	// RunStart is called when a guard lets a request, a tick or a task run. What it returns is the context of the run.
	RunStart func(ctx context.Context, start RunStart) context.Context
	// RunEnd is called when such a run has ended and its guard has tried to record that.
	RunEnd func(ctx context.Context, end RunEnd)
	// NotRun is called when a guard does not let a request, a tick or a task run.
	NotRun func(ctx context.Context, not NotRun)
	// Incident is called when a run has less than its guard promises.
	Incident func(ctx context.Context, incident Incident)
}

// AcquireStart describes a call of Lock or TryLock.
type AcquireStart struct {
	Name  string
	Owner string
	Mode  Mode
	// Permits that are wanted of a [Client.Semaphore], and Limit, its n; 0 for other locks. So they are in all structs.
	Permits, Limit int
	// Try is true for TryLock.
	Try bool
}

// Wait describes a call of Lock that begins to wait.
type Wait struct {
	Name           string
	Owner          string
	Mode           Mode
	Permits, Limit int
	// Position is the place in the queue, from 1 for the next waiter. It is 0 if it is unknown. It always is for
	// [Client.Mutex], whose waiters have no order between processes.
	Position int
	// RetryAfter is the rest of the present holder's lease; zero if unknown.
	RetryAfter time.Duration
	// Holder is the owner that holds the lock, or one of several, and HolderInstance its instance, as far as they are
	// known: see [NotAcquiredError].
	Holder, HolderInstance string
}

// AcquireEnd describes the result of a call of Lock or TryLock.
type AcquireEnd struct {
	Name string
	// Owner as it is stored in Redis. It is not that of AcquireStart if the lock was handed over, see [Client.Mutex].
	Owner          string
	Mode           Mode
	Permits, Limit int
	// Token is 0 unless the lock was granted.
	Token int64
	// TTL is the TTL of the grant; 0 without one.
	TTL time.Duration
	// Reentered is true if the lock was granted as one more entry of the owner, under the lease of the call's context.
	// It is false for an entry by [WithOwner] alone.
	Reentered bool
	// Contended is true if the lock was held, or other waiters were before the call. It is false if the first answer
	// granted the lock, and if there was no answer.
	Contended bool
	// Position is the place in the queue when the wait began, as in [Wait]; 0 if unknown, or without a wait.
	Position int
	// Waited is the time from the call to its return.
	Waited time.Duration
	// Asked counts the requests sent to Redis; 1 means that the first answer decided. It is 0 if another caller of this process
	// handed the lock over, see [Client.Mutex].
	Asked int
	// Holder is the owner that held the lock at the last answer, and HolderInstance its instance, as in [Wait]. Both are
	// empty if the lock was granted.
	Holder, HolderInstance string
	// Err is what the call returned.
	Err error
}

// ReleaseStart describes a call of Unlock.
type ReleaseStart struct {
	Name           string
	Owner          string
	Mode           Mode
	Permits, Limit int
	Token          int64
	// Left is for how long the lease would have been valid without a renewal; 0 if it had ended.
	Left time.Duration
}

// ReleaseEnd describes the result of a call of Unlock.
type ReleaseEnd struct {
	Name           string
	Owner          string
	Mode           Mode
	Permits, Limit int
	Token          int64
	// Held is the time since the grant.
	Held time.Duration
	// Left is for how long the lease would have been valid without a renewal when Unlock began; 0 if it had ended.
	Left time.Duration
	// Err is what the call returned.
	Err error
}

// Renewed describes one renewal.
type Renewed struct {
	Name           string
	Owner          string
	Mode           Mode
	Permits, Limit int
	Token          int64
	// TTL is that which was requested.
	TTL time.Duration
	// Left is for how long the lease was still valid when the answer came, without this renewal. It is the margin of the
	// renewal: about two thirds of the TTL, unless renewals fail or are late.
	Left time.Duration
	// Took is the time from the sending to the answer; 0 if the renewal was not sent.
	Took time.Duration
	// Err is nil if the lease was extended. The client retries a failed renewal while the lease is valid.
	Err error
}

// Lost describes a lease that was lost.
type Lost struct {
	Name           string
	Owner          string
	Mode           Mode
	Permits, Limit int
	Token          int64
	// Reason is why, for metrics.
	Reason LossReason
	// Held is the time since the grant.
	Held time.Duration
	// Left is for how long the lease would have been valid without a renewal; 0 if its time was up.
	Left time.Duration
	// Cause is the cause of the lease's context.
	Cause error
}

// LossReason is why a lease was lost.
type LossReason string

// The reasons of losses.
const (
	LossExpired   LossReason = "expired"   // no renewal succeeded in time
	LossFixedTTL  LossReason = "fixed-ttl" // the TTL of [WithFixedTTL] has expired
	LossMaxHold   LossReason = "max-hold"  // [WithMaxHold] has passed
	LossGone      LossReason = "gone"      // not in Redis any more: deleted, evicted, or expired by its clock
	LossForced    LossReason = "forced"    // force-released, as by [Client.ForceUnlock]; in a Redlock that is LossTaken
	LossReplaced  LossReason = "replaced"  // another owner has the lock in Redis
	LossTaken     LossReason = "taken"     // gone, forced or replaced, and it is not known which
	LossAbandoned LossReason = "abandoned" // [Lease.Abandon]
	LossClosed    LossReason = "closed"    // [Client.Close]
)

// Outcome is how the begin of a [Once] or the completion of an attempt went.
type Outcome string

// The outcomes of a begin.
const (
	OutcomeBegun      Outcome = "begun"       // the attempt runs
	OutcomeReplayed   Outcome = "replayed"    // an earlier run had completed, [ErrCompleted]
	OutcomeInProgress Outcome = "in-progress" // another attempt is running, [ErrInProgress]
	OutcomeMismatch   Outcome = "mismatch"    // the record has another fingerprint, [ErrFingerprintMismatch]
	OutcomeUnknown    Outcome = "unknown"     // the outcome of an earlier run is unknown, [ErrOutcomeUnknown]
	OutcomeRefused    Outcome = "refused"     // by a quota or a window, [ErrTooManyKeys] and [ErrOutsideWindow]
	OutcomeFailed     Outcome = "failed"      // Redis did not decide: it is unavailable, or the context ended first
)

// The outcomes of the completion of an attempt.
const (
	OutcomeCompleted   Outcome = "completed"   // recorded by [Attempt.Complete]
	OutcomeReleased    Outcome = "released"    // by [Attempt.Release]
	OutcomeWithdrawn   Outcome = "withdrawn"   // by a guard that has not run anything
	OutcomeHeld        Outcome = "held"        // recorded as unknown by [Attempt.Hold]
	OutcomeStale       Outcome = "stale"       // another attempt has begun, or an operator has decided, [ErrStale]
	OutcomeUnconfirmed Outcome = "unconfirmed" // Redis has not answered; the client tries further
)

// BeginStart describes a call of [Once.Begin].
type BeginStart struct {
	Key string
}

// BeginEnd describes the result of a call of [Once.Begin].
type BeginEnd struct {
	Key     string
	Outcome Outcome
	// Attempt is the number of the attempt, and Token its fencing token; 0 unless it may run.
	Attempt int
	Token   int64
	// TTL is the TTL of the attempt's lease; 0 unless it may run.
	TTL time.Duration
	// Contended is true if another attempt was running, or other callers waited before this one.
	Contended bool
	// Waited is the time from the call to its return.
	Waited time.Duration
	// Asked counts the requests sent to Redis.
	Asked int
	// Holder is the attempt that was running at the last answer, and HolderInstance its instance, as in [Wait]. Both are
	// empty if the attempt may run.
	Holder, HolderInstance string
	// Err is what the call returned.
	Err error
}

// AttemptEnd describes how an attempt ended.
type AttemptEnd struct {
	Key     string
	Outcome Outcome
	Attempt int
	Token   int64
	// State is what was to be recorded: [StateCompleted], [StateUnknown], or [StateNone] after a release.
	State State
	// Recreated says that Redis had lost the record before the attempt was recorded, by an eviction or [Once.Forget], or that
	// a later attempt had begun and took no effect.
	// The attempt may have overlapped another one.
	Recreated bool
	// LeaseLost is true if the lease had ended before the attempt. Then Lost was called for it.
	LeaseLost bool
	// Held is the time since the key was claimed.
	Held time.Duration
	// Err is what the call returned.
	Err error
}

// Work is what came to a guard: a request, a tick of a schedule, a task, a message.
type Work struct {
	// Place is where: "http", "rpc", "cron", "task" or "message".
	Place string
	// Label is its kind, one of few: the route of a request, the name of a job, the type of a task, the consumer of a
	// message. It is "" if the guard knows none.
	Label string
	// KeyHash is the key_hash of log lines. Within a run that has a record, [KeyHash] returns it too. It is "" without a key.
	KeyHash string
	// Due is the tick, or when the message was sent; zero if the guard has neither.
	Due time.Time
}

// RunStart describes work that a guard lets run.
type RunStart struct {
	Work
	// Token is the fencing token; 0 if the run is unguarded.
	Token int64
	// Attempt counts the runs for the key, from 1; 0 without a record.
	Attempt int
	// Waited is the time from the arrival to the run.
	Waited time.Duration
}

// RunEnd describes a run that has ended.
type RunEnd struct {
	Work
	// Token and Attempt are the same as in [RunStart].
	Token   int64
	Attempt int
	// State is what was to be recorded: [StateCompleted], [StateUnknown], or [StateNone] if nothing was.
	State State
	// Took is the duration of the run.
	Took time.Duration
	// Panicked is true if the run ended with a panic or with [runtime.Goexit]. Err is nil then, unless the guard has a further error.
	Panicked bool
	// Err is why the run failed, by the rules of the guard; nil if it succeeded.
	Err error
}

// NotRun describes work that a guard does not let run.
type NotRun struct {
	Work
	// Reason is why, in a word of the place: the code of an HTTP problem, a reason of package cronlock or package asynqlock.
	// It is [ReasonReplayed] if an earlier run has completed and its result was returned.
	Reason string
	// Attempt is the number of the run whose result was returned; 0 if there is none.
	Attempt int
	// Waited is the time from the arrival to the decision.
	Waited time.Duration
	// RetryAfter is when the work will come again, or may; 0 if unknown, or if it does not.
	RetryAfter time.Duration
	// Err is the reason as an error. It is nil if the caller got the result of an earlier run. A tick that another replica has
	// run has a [CompletedError].
	Err error
}

// ReasonReplayed is the Reason of a [NotRun] whose caller got the result of an earlier run.
const ReasonReplayed = "replayed"

// Incident describes what went wrong with work although it runs, or has run.
type Incident struct {
	Work
	// Kind is what went wrong.
	Kind IncidentKind
	// Err has the details.
	Err error
}

// IncidentKind is what went wrong in an [Incident].
type IncidentKind string

// The kinds of incidents. A place may have more.
const (
	// IncidentUnguarded is a run that began without Redis, because its guard fails open.
	IncidentUnguarded IncidentKind = "unguarded"
	// IncidentLost is a run whose lease was lost before it ended.
	IncidentLost IncidentKind = "lost"
	// IncidentUnrecorded is a run whose end Redis has not confirmed, which is retried in the background; or one that is recorded without
	// its result, because that could not be encoded.
	IncidentUnrecorded IncidentKind = "unrecorded"
	// IncidentOverrun is a run that continues long after its context was cancelled. Its lease is no longer renewed.
	IncidentOverrun IncidentKind = "overrun"
)

// then returns hooks that call the hooks of h first, and then the hooks of next.
func (h Hooks) then(next Hooks) Hooks {
	return Hooks{
		AcquireStart: bothStarts(h.AcquireStart, next.AcquireStart),
		Wait:         both(h.Wait, next.Wait),
		AcquireEnd:   both(h.AcquireEnd, next.AcquireEnd),
		ReleaseStart: bothStarts(h.ReleaseStart, next.ReleaseStart),
		ReleaseEnd:   both(h.ReleaseEnd, next.ReleaseEnd),
		BeginStart:   bothStarts(h.BeginStart, next.BeginStart),
		BeginEnd:     both(h.BeginEnd, next.BeginEnd),
		AttemptEnd:   both(h.AttemptEnd, next.AttemptEnd),
		Renewed:      both(h.Renewed, next.Renewed),
		Lost:         both(h.Lost, next.Lost),
		ProofAsked:   both(h.ProofAsked, next.ProofAsked),
		RunStart:     bothStarts(h.RunStart, next.RunStart),
		RunEnd:       both(h.RunEnd, next.RunEnd),
		NotRun:       both(h.NotRun, next.NotRun),
		Incident:     both(h.Incident, next.Incident),
	}
}

// both returns a hook that calls two, of which each may be nil. The second is called even if the first panics. Otherwise a
// fault of the one would make the counts of the other wrong.
func both[T any](first, second func(context.Context, T)) func(context.Context, T) {
	if first == nil {
		return second
	}
	if second == nil {
		return first
	}
	return func(ctx context.Context, event T) {
		defer second(ctx, event)
		first(ctx, event)
	}
}

// bothStarts is both for hooks that return a context: the second gets the context that the first returned.
func bothStarts[T any](first, second func(context.Context, T) context.Context) func(context.Context, T) context.Context {
	if first == nil {
		return second
	}
	if second == nil {
		return first
	}
	return func(ctx context.Context, event T) context.Context {
		ctx = cmp.Or(first(ctx, event), ctx)
		return cmp.Or(second(ctx, event), ctx)
	}
}

// errHookPanics is the error that hooks get of a call that a panic of another hook has ended.
var errHookPanics = errors.New("holdfast: a hook panics")

// runWithHooks is run with the hooks before and after it.
func (a *acquisition) runWithHooks(ctx context.Context, try bool) (lease *Lease, err error) {
	hooks, h := &a.engine.hooks, &a.Hold
	began := a.engine.now()
	if hooks.AcquireStart != nil {
		ctx = cmp.Or(hooks.AcquireStart(ctx, AcquireStart{
			Name: h.Name, Owner: h.Owner, Mode: modeOf(a.Strategy), Permits: h.Permits, Limit: h.Limit, Try: try,
		}), ctx)
	}
	ran, handed := false, false
	defer func() {
		switch {
		case !ran: // the hook of the wait panics: the others have to see the call end
			a.acquireEnds(ctx, began, errHookPanics)
		case lease != nil && !handed: // the hook panics: no caller gets the lease
			_ = lease.release(ctx, script.NeverHeld)
		}
	}()
	lease, err = a.run(ctx)
	ran = true
	a.acquireEnds(ctx, began, err)
	handed = true
	a.recycle()
	return lease, err
}

// acquireEnds calls the hook for an acquisition that has returned err.
func (a *acquisition) acquireEnds(ctx context.Context, began keepalive.Instant, err error) {
	e, h, token := a.engine, &a.Hold, a.grant.Token
	if e.hooks.AcquireEnd == nil {
		return
	}
	end := AcquireEnd{
		Name: h.Name, Owner: h.Owner, Mode: modeOf(a.Strategy), Permits: h.Permits, Limit: h.Limit,
		Token: token, Contended: a.Contended, Position: a.Position, Waited: e.now().Sub(began), Asked: a.Requests, Err: err,
	}
	if err == nil {
		end.TTL = a.grant.TTL
		parent := a.outer()
		end.Reentered = parent != nil && (token == parent.token || token == parent.lease.token)
	} else {
		end.Holder, end.HolderInstance = a.Holder, e.directory.Instance(a.Holder)
	}
	e.hooks.AcquireEnd(ctx, end)
}

// Waiting implements acquire.Caller: it calls the Wait hook. A waiting client announces its instance to others.
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

// unlockWithHooks is unlock with the hooks before and after it. The hooks get a context of their own, and the call keeps its own unless
// there is a ReleaseStart, because each value that it looks up in one of hooks would cost an allocation.
func (l *Lease) unlockWithHooks(ctx context.Context, live bool, what script.ReleaseReason) error {
	hooks, h, asked, left := &l.engine.hooks, &l.hold, false, time.Duration(0)
	if live {
		left = l.left()
	}
	defer func() {
		if live && !asked { // the hook panics
			l.engine.acquiring.ReleaseInBackground(l.strategy, l.expiring(), what)
		}
	}()
	end := l.hookContext(ctx)
	if hooks.ReleaseStart != nil {
		end = cmp.Or(hooks.ReleaseStart(end, ReleaseStart{
			Name: h.Name, Owner: h.Owner, Mode: modeOf(l.strategy), Permits: h.Permits, Limit: h.Limit,
			Token: l.token, Left: left,
		}), end)
		ctx = end
	}
	asked = true
	err := l.unlock(ctx, live, what)
	if hooks.ReleaseEnd != nil {
		hooks.ReleaseEnd(end, ReleaseEnd{
			Name: h.Name, Owner: h.Owner, Mode: modeOf(l.strategy), Permits: h.Permits, Limit: h.Limit,
			Token: l.token, Held: l.engine.now().Sub(l.entry.Granted), Left: left, Err: err,
		})
	}
	return err
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

// ends calls the hook for the completion of an attempt. It adds to end what is known of the attempt.
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
		errForced: LossForced, errAbandoned: LossAbandoned, ErrClosed: LossClosed,
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
