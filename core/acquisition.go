package core

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/lifecycle"
	"github.com/holdfast-go/holdfast/core/internal/lockscript"
	"github.com/holdfast-go/holdfast/core/internal/transport"
	"github.com/holdfast-go/holdfast/core/internal/waiters"
)

const (
	// unsubscribedPollInterval bounds the interval between two polls of a busy lock before the subscription is confirmed. Until
	// then intervals grow from firstPollInterval, since a short wait may end before the confirmation comes. While the subscription
	// is confirmed, the poll interval of the wait lists applies.
	unsubscribedPollInterval = 250 * time.Millisecond
	firstPollInterval        = 10 * time.Millisecond
)

// The ends of an acquisition that are not errors of a command.
var (
	errBusy        = errors.New("busy")
	errRefused     = errors.New("refused") // for good, see acquisition.refused
	errWaiterLimit = errors.New("crowded") // the limit of WithMaxWaiters is reached
)

// acquisition is one call of Lock or TryLock.
type acquisition struct {
	keeper      *keeper
	protocol    lockscript.Strategy
	hold        lockscript.Hold
	config      lockConfig
	parents     []*holding     // by hold: the lease under which it is a re-entry, nil if there is none
	parent      [1]*holding    // memory for parents
	localWaiter waiters.Waiter // in the wait list of this process, without a queue in Redis
	entered     bool           // the owner may hold the lock already
	explicit    bool           // its owner was named by WithOwner: another process may hold the lock for it
	singleTry   bool           // send the request until there is one answer, and do not wait for the lock

	// makeLease makes the lease of a grant; newLease does if it is nil.
	makeLease func(ctx context.Context, h lockscript.Hold, token int64, sentAt clock.Instant) (*Lease, error)

	ctx      context.Context // the caller's, with the values of its hooks
	requests int
	lockscript.WaitState
	waitReported  bool          // the Wait hook was called
	sentAt        clock.Instant // the last time
	redisAnswered bool          // at least once
	outage        transport.Outage
	lastErr       error // of the last request; nil if Redis has answered
	outageErr     error // the last error that was not merely the end of the wait; nil if Redis has answered
	uncertain     bool  // the outcome of a request is unknown, of this hold or of an earlier one
	queued        bool  // it has been in the queue in Redis
	refused       error // why no waiting would help
	attemptNumber int   // of a Once, when it was granted
	began         time.Time
}

func (l *locker) newAcquisition(ctx context.Context, config lockConfig) *acquisition {
	k := l.keeper
	r, _ := k.acquisitions.Get().(*acquisition)
	*r = acquisition{keeper: k, protocol: l.protocol, config: config}
	r.hold = config.hold(l.name, l.keys)
	r.hold.ScriptArgs, r.hold.MayQueue = l.boxed, lockscript.QueueOf(l.protocol) != nil && config.wait != 0
	r.parents = r.parent[:]
	k.ids.Renew(&r.hold)
	if r.hold.Owner != "" {
		r.entered, r.explicit = true, true
		return r
	}
	// Only a lease of this very lock is entered again. Under the lease of another lock each call is a new owner. So the
	// tasks of one batch, which share the batch's lease, exclude each other here.
	if h := holdingFrom(ctx).of(k, r.hold.Keys.Lock); h != nil {
		r.hold.Owner, r.hold.ParentID, r.parent[0], r.entered = h.lease.hold.Owner, h.lease.hold.ID, h, true
	} else {
		r.hold.Owner = r.hold.ID
	}
	return r
}

// recycle returns the memory to the pool, if nothing else can refer to it: after a Mutex on one server without an uncertain
// request. Otherwise a release in the background may still use the hold.
func (r *acquisition) recycle() {
	if _, plain := r.protocol.(lockscript.Mutex); plain && !r.uncertain && !r.queued {
		r.keeper.acquisitions.Put(r)
	}
}

// run asks until there is a lease or a reason to stop. Without a lease, it leaves no hold in Redis.
func (r *acquisition) run(caller context.Context) (lease *Lease, err error) {
	r.ctx = caller
	if caller.Err() != nil {
		return nil, r.timeUpError(caller)
	}
	ctx, cancel := caller, context.CancelFunc(func() {})
	if r.config.wait > 0 {
		ctx, cancel = context.WithTimeout(caller, r.config.wait)
	}
	defer cancel()
	defer func() {
		if lease == nil { // also if a hook panics
			r.cleanUp()
		}
	}()
	lease, err = r.wait(ctx)
	switch err {
	case waiters.ErrTimeUp:
		err = r.timeUpError(caller)
	case errWaiterLimit:
		err = &NotAcquiredError{Name: r.hold.Name, RetryAfter: max(r.HolderTTL, 0), cause: tooManyWaiters(r.keeper.waiterLimit.Most)}
	}
	return lease, err
}

// cleanUp releases a hold that may have been granted or queued.
func (r *acquisition) cleanUp() {
	switch {
	case r.hold.Unanswered > 0:
		r.keeper.releaseInBackground(r.protocol, &r.hold, lockscript.NeverHeld)
	case r.queued:
		r.keeper.releaseInBackground(r.protocol, &r.hold, lockscript.OnlyQueued)
	}
}

// wait asks for the lock, and waits for it if it is held and the limit of WithMaxWaiters allows one more waiter.
func (r *acquisition) wait(ctx context.Context) (*Lease, error) {
	if r.singleTry || r.config.wait == 0 {
		return r.askWithoutWaiting(ctx, waiters.ErrTimeUp)
	}
	key := r.hold.Keys.Lock
	if !r.keeper.waiterLimit.TryAdd(key) {
		return r.askAtWaiterLimit(ctx)
	}
	defer r.keeper.waiterLimit.Remove(key)
	if line := lockscript.QueueOf(r.protocol); line != nil {
		return r.waitInQueue(ctx, line)
	}
	return r.waitForTurn(ctx)
}

// askWithoutWaiting asks until Redis answers. It returns busy if the lock is held.
func (r *acquisition) askWithoutWaiting(ctx context.Context, busy error) (*Lease, error) {
	r.hold.MayQueue = false
	lease, err := r.ask(ctx)
	if err == errBusy {
		err = busy
	}
	return lease, err
}

// askAtWaiterLimit is askWithoutWaiting beyond the limit of WithMaxWaiters. Only a re-entry asks Redis.
func (r *acquisition) askAtWaiterLimit(ctx context.Context) (*Lease, error) {
	if r.entered {
		return r.askWithoutWaiting(ctx, errWaiterLimit)
	}
	r.HolderTTL, _ = r.keeper.waitLists.HolderTTL(r.hold.Keys.Lock, r.keeper.now())
	return nil, errWaiterLimit
}

// waitForTurn asks when the acquisition is first in its wait list.
func (r *acquisition) waitForTurn(ctx context.Context) (*Lease, error) {
	if r.entered {
		// A re-entry does not wait in the list: it would wait behind others for its own release.
		if lease, err := r.ask(ctx); err != errBusy {
			return lease, err
		}
	}
	for {
		lease, err := r.waitInList(ctx)
		if err != waiters.ErrAskAlone {
			return lease, err
		}
		if lease, err = r.ask(ctx); err != errBusy {
			return lease, err
		}
	}
}

// waitInList waits in the wait list of this process, and polls Redis as its head.
func (r *acquisition) waitInList(ctx context.Context) (*Lease, error) {
	t := &r.localWaiter
	*t = waiters.Waiter{Question: questionOf(&r.hold)}
	r.keeper.waitLists.Enter(t, r.listKey(), r.hold.Ack)
	defer func() {
		t.Leave()
		r.unregisterClient(t)
	}()
	if t.MustWait() {
		r.reportWait(0)
	}
	if err := t.Wait(ctx, r.keeper.operations.Closing); err != nil {
		if r.HolderTTL, r.redisAnswered = r.keeper.waitLists.HolderTTL(t.Key, r.keeper.now()); !r.redisAnswered {
			r.lastErr = transport.ErrNotAnswered
		}
		return nil, ownRefusal(err)
	}
	if left, heard := r.keeper.waitLists.HolderTTL(t.Key, r.keeper.now()); heard {
		r.HolderTTL, r.redisAnswered = left, true // Redis answers, whether or not there is time for another answer
	}
	lease, err := r.pollAsHead(ctx, t)
	switch {
	case lease != nil:
		t.SetHolderTTL(r.hold.TTL, r.keeper.now())
	case err == r.refused:
		t.Share(ownRefusal(err), settles(err))
	case errors.Is(err, ErrUnavailable):
		t.FailAll(err, errors.Is(err, ErrNotReplicated)) // the waiters behind it would get the same answer, one after the other
	}
	return lease, err
}

// listKey tells which line of this process the request stands in. An explicit owner has one of its own: it may get the
// lock in another process, and would not ask in time to enter it too while others of this process are before it.
func (r *acquisition) listKey() string {
	if r.explicit {
		return r.hold.Keys.Lock + "\x00" + r.hold.Owner
	}
	return r.hold.Keys.Lock
}

// pollAsHead asks until the lock is granted: after a notification, after the holder's lease, and at the poll interval.
func (r *acquisition) pollAsHead(ctx context.Context, t *waiters.Waiter) (*Lease, error) {
	sub := r.protocol.SubscribeIfActive(r.hold.Keys)
	defer func() {
		if sub != nil {
			sub.Close()
		}
	}()
	for polls := 0; ; polls++ {
		// Without a confirmed subscription, waking this client would be in vain.
		r.hold.RegistersClient = sub != nil && sub.Confirmed() && r.keeper.hasOneServer()
		t.StartAsking()
		if r.hold.RegistersClient {
			t.SetRegistered(true)
		}
		lease, err := r.ask(ctx)
		if err != errBusy {
			if lease != nil && r.hold.RegistersClient {
				t.SetRegistered(false) // acquire.lua has taken the client out
			}
			return lease, err
		}
		r.reportWait(0)
		t.SetHolderTTL(r.HolderTTL, r.keeper.now())
		if sub == nil {
			// The confirmation of the subscription notifies, too. So the lock is polled again once no release can be
			// missed any more.
			sub = r.protocol.Subscribe(r.hold.Keys)
		}
		limit := min(firstPollInterval<<min(polls, 10), unsubscribedPollInterval)
		if sub.Confirmed() {
			limit = r.keeper.waitLists.PollInterval()
		}
		lifecycle.Pause(ctx, r.nextPoll(limit), sub.Notifications(), r.keeper.operations.Closing)
		if r.timeUp(ctx) {
			return nil, waiters.ErrTimeUp
		}
		r.hold.Woken = sub.StartAsking() && !r.explicit // an explicit owner has a line of its own: the wake-up may have been for another one
	}
}

// nextPoll returns how long to wait for a notification: up to limit, or until the holder's lease expires.
func (r *acquisition) nextPoll(limit time.Duration) time.Duration {
	poll := limit/2 + rand.N(limit/2)
	if r.HolderTTL >= 0 {
		// A little after the expiry, and not all at the same moment.
		poll = min(poll, r.HolderTTL+time.Millisecond+rand.N(4*time.Millisecond))
	}
	return poll
}

// ask sends the request until it is answered.
func (r *acquisition) ask(ctx context.Context) (*Lease, error) {
	patience := transport.OutageLimit
	if r.config.wait == 0 {
		patience = 0
	}
	for {
		lease, err := r.askOnce(ctx)
		switch {
		case err == nil || err == errBusy:
			return lease, err
		case err == errRefused:
			return nil, r.refused
		case r.timeUp(ctx):
			return nil, waiters.ErrTimeUp
		case r.config.wait == 0 && notReplicated(err):
			return nil, r.unavailable(nil) // the replicas have had their time
		case !transport.Transient(err):
			return nil, errorf("holdfast: %s %q: %w", r.kind(), r.hold.Name, failure(ctx, r.hold.Keys.Lock, err))
		}
		longest := transport.MaxRequestRetryInterval
		if transport.SlotMigrating(err) && patience > 0 {
			r.outage.Began, longest = time.Now(), transport.MaxMigrationRetryInterval // no outage, however long it takes
		}
		time, again := r.outage.Pause(patience, longest)
		if !again {
			return nil, r.unavailable(nil)
		}
		lifecycle.Pause(ctx, time, nil, r.keeper.operations.Closing)
		if r.timeUp(ctx) {
			return nil, waiters.ErrTimeUp
		}
	}
}

func (r *acquisition) askOnce(ctx context.Context) (*Lease, error) {
	r.requests++
	r.dropEndedParent(ctx)
	r.sentAt = r.keeper.now()
	a, err := r.protocol.Acquire(ctx, &r.hold)
	r.lastErr = err
	if err == nil || !timedOutFirst(err) {
		r.outageErr = err
	}
	if err != nil {
		if o := transport.Classify(err); o == transport.Unknown || o == transport.Failed {
			r.hold.Unanswered++
		}
		r.uncertain = r.uncertain || r.hold.Unanswered > 0
		return nil, err
	}
	r.uncertain = r.uncertain || r.hold.Unanswered > 0
	r.redisAnswered = true
	if a.Granted {
		r.sentAt, r.attemptNumber, r.began = max(r.sentAt, a.SentAt), a.Attempt, a.Began
		lease, err := r.lease(ctx, a.Token)
		if err == nil {
			if r.hold.Unanswered > 0 {
				r.protocol.Bar(&r.hold)
			}
			return lease, nil
		}
		r.replaceHold(ctx, errTooLate)
		return nil, r.lastErr
	}
	if a.HoldReleased {
		r.replaceHold(ctx, errHoldReleased)
		return nil, r.lastErr
	}
	r.outage = transport.Outage{}
	if a.Refused != nil {
		r.refused = publicRefusal(r.hold.Name, a.Refused)
		return nil, errRefused
	}
	r.WaitState = a.WaitState
	return nil, errBusy
}

func (r *acquisition) lease(ctx context.Context, token int64) (*Lease, error) {
	if r.makeLease != nil {
		return r.makeLease(ctx, r.hold, token, r.sentAt)
	}
	return r.keeper.newLease(ctx, r.protocol, r.hold, grant{token, r.sentAt, r.hold.TTL, r.config.fixed, r.config.maxHold})
}

// replaceHold releases the hold and continues with a new hold ID. The release comes first because the old hold would make
// Redis refuse the next request.
func (r *acquisition) replaceHold(ctx context.Context, reason error) {
	r.lastErr = reason
	abandoned := r.hold // a copy: a Redlock may still release it on some servers after release has returned
	if _, err := r.protocol.Release(ctx, &abandoned, lockscript.NeverHeld); err != nil {
		r.keeper.releaseInBackground(r.protocol, &abandoned, lockscript.NeverHeld)
	}
	own := r.hold.Owner == r.hold.ID
	if r.keeper.ids.Renew(&r.hold); own {
		r.hold.Owner = r.hold.ID
	}
}

// reportWait calls the Wait hook, once. A position of 0 is unknown.
func (r *acquisition) reportWait(position int) {
	if r.waitReported {
		return
	}
	r.waitReported = true
	r.keeper.hooks.wait(r.ctx, Wait{
		Name: r.hold.Name, Owner: r.hold.Owner, Position: position, RetryAfter: max(r.HolderTTL, 0),
	})
}

// timeUp reports whether ctx has ended or the client is closed.
func (r *acquisition) timeUp(ctx context.Context) bool {
	return ctx.Err() != nil || r.keeper.operations.IsClosed()
}
