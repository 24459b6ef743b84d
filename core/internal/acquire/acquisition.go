package acquire

import (
	"context"
	"slices"
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
	Reentries  []Reentry     // those of its holds, see dropParents
	Reenters   bool          // true if the owner may hold the lock already
	// ForeignParent is true for a semaphore under the lease of another client, which may lie in another Redis.
	ForeignParent bool
	// RenewsGrants is true if a grant by message may become a lease. It is false if the time of the lease begins only when
	// Redis is asked for it.
	RenewsGrants bool
	// Question is what the answer depends on beside the state of the lock. Waiters with equal questions get equal answers. It
	// is nil if no answer holds for two.
	Question any
}

// Caller is the call that an acquisition serves. Its methods run on the goroutine of Run.
type Caller interface {
	// Accept makes the lease of a grant. It returns an error if the time of the grant was up. ctx is that of Run.
	Accept(ctx context.Context, h *script.Hold, g script.Grant) error
	// Waiting is called once, when the wait for another owner begins. position is that in the queue in Redis, from 1, or 0 if
	// there is no queue. holderTTL is the rest of the holder's lease, or 0.
	Waiting(ctx context.Context, position int, holderTTL time.Duration)
	// StillWaiting is called every few seconds while the acquisition waits. Of the callers without a queue in Redis, that is
	// only the first of their list. since is when Waiting was called.
	StillWaiting(since keepalive.Instant)
}

// Acquisition is one run of a [Request]. Its exported fields tell how the run went, after Run. One goroutine uses it, that
// of Run. So it needs no mutex: what other goroutines tell it comes by channels, by the wait lists or by heartbeats.
//
// The hold changes its ID when it is replaced. So what refers to the hold by its ID, such as a place in the queue, must be
// made anew then.
type Acquisition struct {
	Request
	Requests  int   // that were sent
	Answered  bool  // true if Redis has answered at least once
	LastErr   error // of the last request; nil if Redis has answered it
	Outage    error // the last error that was not merely the end of the wait; nil if Redis has answered since
	Contended bool  // true if the lock was held, or others waited before this acquisition
	Position  int   // in the queue in Redis when the wait began, from 1; 0 if unknown
	script.WaitState

	ctx          context.Context   // the caller's, with the values of its hooks
	localWaiter  waiter            // in the list of this process, without a queue in Redis
	want         script.Wanted     // by the next request
	unregistered bool              // true if the last grant has taken the client out of the set of waiting clients
	sentAt       keepalive.Instant // of the last request
	outage       transport.Outage  // failures in a row, through all states
	uncertain    bool              // true if the outcome of a request is unknown, of this hold or of an earlier one
	queued       bool              // true if a hold of this acquisition has been in the queue in Redis
	call         *Call             // among the calls that wait; nil until Waiting is called
	accepted     bool              // true if the caller has a lease: then nothing is released
}

// Reusable returns true if nothing refers to the memory of the acquisition after Run: on one server, without an uncertain
// request and without a place in a queue. Otherwise a release in the background may still use the hold.
func (a *Acquisition) Reusable() bool { return a.Env.OneServer && !a.uncertain && !a.queued }

// Run acquires the lock. If it returns nil, the caller has accepted a grant, and its lease has the hold. Otherwise Run
// leaves no hold in Redis, and the error is ErrTimeUp, [ErrWaiterLimit], a [RefusedError], an [UnavailableError] or
// a [FailedError]. It must be called once.
//
// The longest wait ends a context that only Run knows. Hooks and the lease get the caller's. Why: a lease that was granted
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
// request. Why: without heartbeats, its place would only delay the waiters behind it.
func (a *Acquisition) askWithoutWaiting(ctx context.Context, busy error) error {
	err := a.ask(ctx)
	if err == errBusy {
		return busy
	}
	return err
}

// askAtWaiterLimit is askWithoutWaiting beyond the limit of waiters. Only a re-entry asks Redis. Why: it may be granted at
// once, and the waiters may be waiting for its own release. Other callers get the last answer to the first waiter of the
// list.
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

// Reentry is a hold of the request that enters the lock under a lease of the same owner.
type Reentry struct {
	Hold   *script.Hold // that of the acquisition, or one of its batch
	Parent interface {
		// Ended returns true if the lease has ended.
		Ended() bool
	}
}

// leaveForeignParent makes a request a new owner that Redis has refused although it has a parent. The request took no place in
// the queue. Why: a re-entry into a semaphore never has to wait, so Redis does not know the parent, which lies in another
// Redis. As the parent's owner, all callers with its context would share the permits of one.
func (a *Acquisition) leaveForeignParent(ctx context.Context) {
	a.ForeignParent = false
	a.dropParents(ctx, func(Reentry) bool { return true })
}

// dropParents makes a re-entry a new owner if drops is true for its parent. With hasEnded it must be called before each request,
// because the lease may end while the acquisition waits. Why:
//
//  1. The lease of A ends, for instance at its MaxHold. Redis keeps its hold until the TTL expires.
//  2. Callers B and C still have the context of that lease, and lock the same name. Both ask as the owner of A.
//  3. Redis would grant both a re-entry, and they would be in the lock together.
//
// As new owners, B and C exclude each other. If Redis knows of the end before the client, the scripts refuse the owner by
// the ID of the parent, see script/lua/lock/mutex_common.lua. If an earlier request is uncertain or queued, its hold is
// replaced first, because it belongs to the old owner.
func (a *Acquisition) dropParents(ctx context.Context, drops func(Reentry) bool) {
	if !slices.ContainsFunc(a.Reentries, drops) {
		return
	}
	if a.uncertain || a.queued {
		a.replaceHold(ctx, a.LastErr)
	}
	a.Reentries = slices.DeleteFunc(a.Reentries, func(r Reentry) bool {
		if !drops(r) {
			return false
		}
		r.Hold.Owner, r.Hold.ParentID = "", "" // a member of a batch without an owner gets that of the batch
		if r.Hold == &a.Hold {
			r.Hold.Owner = r.Hold.ID
		}
		return true
	})
	if a.call != nil {
		a.Env.Calls.update(a.call, a.Hold.Owner, a.call.Place)
	}
}

// hasEnded returns true if the lease of a re-entry has ended.
func hasEnded(r Reentry) bool { return r.Parent.Ended() }
