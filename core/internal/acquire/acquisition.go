package acquire

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// Request says what to acquire, and how long to wait for it.
type Request struct {
	Env              *Environment
	Strategy         script.Strategy
	script.Abilities             // of the strategy
	Hold             script.Hold // with an ID and an owner
	Caller           Caller

	Wait       time.Duration // the longest wait for another owner; 0 for none, negative for no limit
	SingleTry  bool          // true if the request is sent until there is one answer, even if Wait is not 0
	NamedOwner bool          // true if WithOwner has named the owner
	Parent     Parent        // the lease under which the hold is a re-entry; nil without, see dropParent
	Reenters   bool          // true if the owner may hold the lock already
	// ForeignParent is true for a semaphore under the lease of another client, which may be in another Redis.
	ForeignParent bool
	// RenewsGrants is true if a grant by message may become a lease. It is false if the time of the lease begins only when
	// Redis is asked for it.
	RenewsGrants bool
	// HandsOver is true if the hold may be handed over to, and by, other callers of this process, see handover.go.
	HandsOver bool
	// Question is what the answer depends on beside the state of the lock. Waiters with equal questions get equal answers. It
	// is nil if no answer holds for two.
	Question any
}

// Caller is the call that an acquisition serves. Its methods run on the goroutine of Run.
type Caller interface {
	// Accept makes the lease of a grant. It returns an error if the time of the grant was up. ctx is the one given to Run.
	Accept(ctx context.Context, h *script.Hold, g script.Grant) error
	// Waiting is called once, when the wait for another owner begins. position is that in the queue in Redis, from 1, or 0 if
	// there is no queue. holderTTL is the rest of the holder's lease, or 0.
	Waiting(ctx context.Context, position int, holderTTL time.Duration)
	// StillWaiting is called every few seconds while the acquisition waits. Of the callers without a queue in Redis, that is
	// only the first of their list. since is when Waiting was called.
	StillWaiting(since keepalive.Instant)
}

// Acquisition is one run of a [Request]. Its exported fields say how the run went, after Run. One goroutine uses it, that
// of Run. So it needs no mutex: what comes from other goroutines comes through channels, by the wait lists or by heartbeats.
//
// The hold changes its ID when it is replaced. So what refers to the hold by its ID, such as a place in the queue, must be
// made anew then.
type Acquisition struct {
	Request
	Requests  int    // that were sent
	Answered  bool   // true if Redis has answered at least once
	LastErr   error  // of the last request; nil if Redis has answered it
	Outage    error  // the last error that was not only the end of the wait; nil if Redis has answered since
	Contended bool   // true if the lock was held, or others waited before this acquisition
	Position  int    // in the queue in Redis when the wait began, from 1; 0 if unknown
	Chain     *Chain // of the grant that the caller accepts; nil if it may not be handed over
	script.WaitState

	ctx          context.Context   // the caller's, with the values of its hooks
	localWaiter  waiter            // in the list of this process, without a queue in Redis
	want         script.Wanted     // by the next request
	unregistered bool              // true if the last grant has taken the client out of the set of waiting clients
	sentAt       keepalive.Instant // of the last request
	outage       transport.Outage  // failures in a row, through all states
	asking       bool              // true while a request is sent
	uncertain    bool              // true if the outcome of a request is unknown, of this hold or of an earlier one
	queued       bool              // true if a hold of this acquisition has been in the queue in Redis
	call         *Call             // among the calls that wait; nil until Waiting is called
	accepted     bool              // true if the caller has a lease: then nothing is released
}

// Reusable returns true if nothing refers to the memory of the acquisition after Run: on one server, without an uncertain
// request and without a place in a queue. Otherwise a release in the background may still use the hold.
func (a *Acquisition) Reusable() bool { return a.Env.OneServer && !a.uncertain && !a.queued }

// Run acquires the lock. If it returns nil, the caller has accepted a grant, and its lease has the hold. Otherwise Run
// leaves no hold in Redis, and the error is ErrTimeUp, [ErrWaiterLimit], a [script.Refusal] that waiting
// would not help, or a [FailedError]. It must be called once.
//
// The longest wait ends a context that only Run knows. Hooks and the lease get the caller's, because a lease that was granted
// at the last moment must not end with the wait.
func (a *Acquisition) Run(caller context.Context) error {
	a.ctx = caller
	if caller.Err() != nil {
		return ErrTimeUp
	}
	ctx, cancel := caller, context.CancelFunc(func() {})
	if a.Wait > 0 {
		ctx, cancel = context.WithTimeout(caller, a.Wait)
	}
	defer cancel()
	defer func() {
		if a.call != nil {
			a.Env.Calls.leave(a.call)
		}
		if !a.accepted { // also if a hook panics
			a.cleanUp()
		}
	}()
	return a.acquire(ctx)
}

// acquire asks for the lock, and waits for it if it is held and the limit allows one more waiter.
func (a *Acquisition) acquire(ctx context.Context) error {
	if a.SingleTry || a.Wait == 0 {
		return a.askWithoutWaiting(ctx, ErrTimeUp)
	}
	key := a.Hold.Keys.Lock
	if !a.Env.Waits.tryAdd(key) {
		return a.askAtWaiterLimit(ctx)
	}
	defer a.Env.Waits.remove(key)
	if a.Queue != nil {
		return a.waitInQueue(ctx)
	}
	return a.waitWithoutQueue(ctx)
}

// askWithoutWaiting asks until Redis answers. It returns busy if another owner has the lock. It does not let Redis queue the
// request, because without heartbeats, its place would only delay the waiters behind it.
func (a *Acquisition) askWithoutWaiting(ctx context.Context, busy error) error {
	err := a.ask(ctx)
	if err == errBusy {
		return busy
	}
	return err
}

// askAtWaiterLimit is askWithoutWaiting beyond the limit of waiters. Only a re-entry asks Redis, because it may be granted at
// once, and the waiters may be waiting for its own release. Other callers get the last answer to the first waiter of the list.
func (a *Acquisition) askAtWaiterLimit(ctx context.Context) error {
	if a.Reenters {
		return a.askWithoutWaiting(ctx, ErrWaiterLimit)
	}
	a.Contended = true
	a.Holder, a.HolderTTL, _ = a.Env.Lists.holder(a.Hold.Keys.Lock, a.Env.Now())
	return ErrWaiterLimit
}

// reportWait enters the call among those that wait, and calls Waiting, unless that was done before. A position of 0 is
// unknown. place is nil without a queue in Redis.
func (a *Acquisition) reportWait(position int, place *place) {
	if a.call != nil {
		if a.call.Place != place { // only this goroutine writes to it
			a.Env.Calls.update(a.call, a.Hold.Owner, place)
		}
		return
	}
	a.call = &Call{Name: a.Hold.Name, Owner: a.Hold.Owner, Strategy: a.Strategy, Since: a.Env.Now(), Place: place}
	if place == nil {
		a.call.Local = &a.localWaiter
	}
	a.Env.Calls.enter(a.call)
	a.Contended, a.Position = true, position
	a.Caller.Waiting(a.ctx, position, max(a.HolderTTL, 0))
}

// cleanUp releases a hold that may have been granted or queued, in the background. A hold whose requests were all answered,
// and never queued, is not in Redis. If requests are unanswered, Redis must remember the release, because they may still
// arrive.
func (a *Acquisition) cleanUp() {
	if a.asking { // a hook of the user's client has ended the goroutine by runtime.Goexit
		a.Hold.Unanswered++
	}
	switch {
	case a.Hold.Unanswered > 0:
		a.Env.ReleaseInBackground(a.Strategy, &a.Hold, script.NeverHeld)
	case a.queued:
		a.Env.ReleaseInBackground(a.Strategy, &a.Hold, script.OnlyQueued)
	}
}

// Environment is what the acquisitions and releases of one client share. It must not be changed after the first of them,
// and is safe for concurrent use.
type Environment struct {
	transport.Background
	IDs *script.IDs
	// OneServer is true if locks live on one server or Cluster, whose executor knows transport.DetachedContext. It is false
	// for a Redlock.
	OneServer bool

	Lists      *Lists      // for locks without a queue in Redis
	Heartbeats *Heartbeats // nil for a Redlock, which has no queues
	Waits      *Waits
	Calls      *Calls // that wait, for operators

	// NotReleased is called with a hold that no caller got and that could not be removed from Redis. It runs on
	// the goroutine that sends pending commands, so it must not block.
	NotReleased func(h *script.Hold, err error)
	// TooManyPending is called if a hold is left to expire because transport.MaxPending releases are pending.
	TooManyPending func()
}

// timeUp returns true if ctx has ended or Close of the client has begun. Then the acquisition must end with
// ErrTimeUp.
func (e *Environment) timeUp(ctx context.Context) bool {
	return ctx.Err() != nil || e.Operations.IsClosed()
}

// ask sends the request until it is answered. It returns nil after a grant that the caller has accepted, and errBusy if
// another owner has the lock. Other errors end the acquisition. The hold may have another ID afterwards.
//
// The outage counts on from one ask to the next, because only an answer ends it. A call that does not wait gets few tries.
// While a slot of a Cluster migrates, the limit of outages does not count, because Redis answers, and the refusals end with the
// migration.
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
		if _, refused := err.(*script.Refusal); refused {
			return err
		}
		switch {
		case a.Env.timeUp(ctx):
			return ErrTimeUp
		case a.Wait == 0 && transport.Unacknowledged(err):
			return &FailedError{err, true} // the replicas have had the time of WAIT already
		case !transport.Transient(err) && (a.Wait == 0 || !transport.Unrecognized(err)):
			return &FailedError{Err: err}
		}
		longest := transport.MaxRequestRetryInterval
		if transport.SlotMigrating(err) && patience > 0 {
			a.outage.Began, longest = time.Now(), transport.MaxMigrationRetryInterval // so the limit never passes
		}
		pause, again := a.outage.Pause(patience, longest)
		if !again {
			return &FailedError{err, transport.Transient(err)}
		}
		keepalive.Pause(ctx, pause, nil, a.Env.Operations.Closing)
		if a.Env.timeUp(ctx) {
			return ErrTimeUp
		}
	}
}

// request sends the request once. It returns nil after a grant that the caller has accepted, errBusy, a refusal, or
// the error of the request. The hold may have another ID afterwards.
func (a *Acquisition) request(ctx context.Context) error {
	a.Requests++
	if a.Parent != nil && a.Parent.Ended() {
		a.dropParent(ctx)
	}
	a.sentAt = a.Env.Now()
	want := a.want
	want.Place = want.Place && !a.ForeignParent
	a.asking = true
	result, err := a.Strategy.Acquire(ctx, &a.Hold, want)
	a.asking = false
	a.record(err)
	if err != nil {
		return err
	}
	a.Answered, a.unregistered = true, result.Unregistered
	a.Hold.Stored = a.Hold.Stored || result.Granted || a.want.Place
	switch {
	case result.Granted:
		if result.Reserved > 0 {
			a.Chain = a.newChain(result.Grant)
		}
		return a.accept(ctx, result.Grant)
	case result.HoldReleased:
		a.replaceHold(ctx, errHoldReleased)
		return a.LastErr
	}
	a.outage = transport.Outage{}
	if result.Refused != nil {
		return result.Refused
	}
	if a.ForeignParent {
		a.leaveForeignParent(ctx)
		return a.request(ctx)
	}
	a.WaitState, a.Contended = result.WaitState, true
	return errBusy
}

// record notes the outcome of a request: whether Redis can have granted the hold without an answer, and why there was none. An
// error that is only the end of the wait does not replace Outage, because the earlier failure is the more useful error.
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
	granted.SentAt, granted.TTL, a.Hold.Slot, a.Hold.Compact = a.sentAt, a.Hold.TTL, granted.Slot, granted.Compact
	if err := a.Caller.Accept(a.ctx, &a.Hold, granted); err != nil {
		a.Chain = nil
		a.replaceHold(ctx, ErrTooLate)
		return a.LastErr
	}
	a.markAccepted()
	return nil
}

// markAccepted records that the caller has a lease of the hold. It has Redis refuse the requests of the hold that arrive later.
//
// It bars them, although a release would have the same effect, because of this case:
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
// An owner that is named after the hold changes with it. Other owners stay: the owner of a re-entry, and a named one.
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

// Parent is a lease of the owner of a request.
type Parent interface {
	// Ended returns true if the lease has ended.
	Ended() bool
}

// leaveForeignParent makes a request a new owner that Redis has refused although it has a parent. The request took no place in
// the queue, because a re-entry into a semaphore never has to wait, so Redis does not know the parent, which is in another
// Redis. As the parent's owner, all callers with its context would share the permits of one.
func (a *Acquisition) leaveForeignParent(ctx context.Context) {
	a.ForeignParent = false
	a.dropParent(ctx)
}

// dropParent makes a re-entry a new owner. It must be called before a request if the parent has ended, which may be while the
// acquisition waits. Otherwise:
//
//  1. The lease of A ends, for instance at its MaxHold. Redis keeps its hold until the TTL expires.
//  2. Callers B and C still have the context of that lease, and lock the same name. Both ask as the owner of A.
//  3. Redis would grant both a re-entry, and they would be in the lock together.
//
// As new owners, B and C exclude each other. If Redis knows of the end before the client, the scripts refuse the owner by
// the ID of the parent, see script/lua/lock/mutex_common.lua. If an earlier request is uncertain or queued, its hold is
// replaced first, because it belongs to the old owner.
func (a *Acquisition) dropParent(ctx context.Context) {
	if a.uncertain || a.queued {
		a.replaceHold(ctx, a.LastErr)
	}
	a.Parent, a.Hold.Owner, a.Hold.ParentID = nil, a.Hold.ID, ""
	if a.call != nil {
		a.Env.Calls.update(a.call, a.Hold.Owner, a.call.Place)
	}
}

const (
	// ReleaseTimeout bounds how long Unlock and Close wait for an answer.
	ReleaseTimeout = script.ReleaseTimeout
	// BackgroundReleaseLimit is how long beyond the TTL of a hold its release is retried in the background. It goes beyond the
	// TTL because other holds of the owner may keep it in Redis.
	BackgroundReleaseLimit = 10 * time.Minute
)

// Release releases a hold, detached from ctx and bounded by ReleaseTimeout. It returns true if Redis had the hold. If it
// returns an error, the release is not confirmed and is retried in the background, so the caller need not repeat it.
func (e *Environment) Release(ctx context.Context, p script.Strategy, h *script.Hold, what script.ReleaseReason) (held bool, err error) {
	confirmed := false
	defer func() {
		if !confirmed { // also if a hook of the user's client ends the goroutine by runtime.Goexit
			e.ReleaseInBackground(p, h, what)
		}
	}()
	err = e.runDetached(ctx, &h.ReleaseCtx, func(ctx context.Context) (err error) {
		held, err = p.Release(ctx, h, what)
		return err
	})
	confirmed = err == nil
	return held, err
}

// RunDetached sends an idempotent command until it is answered, detached from ctx and bounded by ReleaseTimeout. Unlike
// Release it retries nothing in the background.
func (e *Environment) RunDetached(ctx context.Context, command func(context.Context) error) error {
	return e.runDetached(ctx, new(transport.DetachedContext), command)
}

// runDetached is RunDetached with memory for the context of the first try.
//
// On one server the first try has no timer of its own, which saves allocations. After a temporary error retries follow, unless ctx
// has ended during the first try: the caller wants to leave. If ctx had ended before, its end says nothing about how long the
// caller can wait.
func (e *Environment) runDetached(ctx context.Context, first *transport.DetachedContext, command func(context.Context) error) error {
	if e.OneServer {
		over := ctx.Err() != nil
		err := command(first.Reset(ctx))
		if err == nil || !transport.Transient(err) || !over && ctx.Err() != nil {
			return err
		}
	}
	detached, cancel := detach(ctx)
	defer cancel()
	return transport.RetryUntilAnswered(detached, command)
}

// detach returns a context with the values of ctx. It ends after ReleaseTimeout, or transport.ReleaseGrace after the end of
// ctx. If ctx has ended already, only ReleaseTimeout counts: otherwise nothing could be sent. The caller must call the
// function.
func detach(ctx context.Context) (context.Context, context.CancelFunc) {
	detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), ReleaseTimeout)
	if ctx.Done() == nil || ctx.Err() != nil {
		return detached, cancel
	}
	stop := context.AfterFunc(ctx, func() {
		keepalive.Pause(detached, transport.ReleaseGrace, nil, nil)
		cancel()
	})
	return detached, func() { stop(); cancel() }
}

// ReleaseInBackground releases a hold that was perhaps granted after its caller had returned, or whose release was not
// confirmed. The release is retried until Redis answers, or until the TTL and BackgroundReleaseLimit have passed. The
// script remembers the hold if a request may still arrive, so that Redis refuses that request. It copies the hold, so h may
// be used again. Close does not wait for the release of a hold that has expired by itself.
func (e *Environment) ReleaseInBackground(p script.Strategy, h *script.Hold, what script.ReleaseReason) {
	abandoned := *h
	pending := p.Pending(h)
	if pending == nil { // each server of a Redlock has one, to which its release adds
		e.Go(func(ctx context.Context) { _, _ = p.Release(ctx, &abandoned, what) })
		return
	}
	now := e.Now()
	moot := abandoned.ExpiresAt
	if moot == 0 {
		moot = now.Add(max(abandoned.TTL, abandoned.MinHold))
	}
	taken := pending.Add(&transport.PendingCommand{
		Send: func(ctx context.Context) error {
			_, err := p.Release(transport.Detached(ctx), &abandoned, what)
			return err
		},
		Due: now, Until: now.Add(max(abandoned.TTL, abandoned.MinHold) + BackgroundReleaseLimit), Moot: moot,
		Ended: func(err error) {
			// The caller of a lock that was held knows already: from the error of Unlock, or from the loss of the lease.
			if err != nil && what != script.HeldByCaller && !transport.WrongType(err) {
				e.NotReleased(&abandoned, err)
			}
		},
	})
	if !taken && !e.Operations.IsClosed() {
		e.TooManyPending()
	}
}

// ErrWaiterLimit is the end of an acquisition that may not wait because as many callers as the limit allows do.
var ErrWaiterLimit = errors.New("as many callers wait as may")

// ErrTooLate is what a [Caller] returns for a grant whose time was up before it arrived.
var ErrTooLate = errors.New("answered after the lease had ended")

// The ends of a request that are not errors of a command.
var (
	// errBusy is the answer that another owner has the lock. It never leaves this package.
	errBusy = errors.New("another owner has the lock")
	// errHoldReleased is the answer that this hold was released before the request arrived. It counts as an unknown outcome, so
	// the request is repeated, with another hold.
	errHoldReleased = errors.New("given up before")
)

// FailedError is the end of an acquisition with the error of its last request. The waiters of a list may share it.
type FailedError struct {
	Err    error
	Outage bool // true if the acquisition met with an outage; false if a repeated request would meet the error too
}

// Error returns the error of the request.
func (e *FailedError) Error() string { return e.Err.Error() }

// WaitEnded returns true if err says only that the time was up before the answer, or before a connection was made. Such an
// error is no sign of an outage: the wait may have been too short.
func WaitEnded(err error) bool {
	var timeout net.Error
	if transport.Unwritten(err) && errors.As(err, &timeout) && timeout.Timeout() {
		return true
	}
	for _, end := range []error{transport.ErrNotSent, transport.ErrNotAnswered, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}

// LooksLikeOutage returns true if Redis has never answered this acquisition, or has not answered its last request although
// that was sent transport.StallTimeout ago. It is for an acquisition whose last request has no answer.
func (a *Acquisition) LooksLikeOutage() bool {
	return !a.Answered || a.Env.Now().Sub(a.sentAt) >= transport.StallTimeout
}
