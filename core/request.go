package core

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

const (
	// outagePatience is how long a waiting Lock endures a Redis that does not answer.
	outagePatience = 5 * time.Second
	// pollSubscribed and pollUnsubscribed bound the interval between two polls of a busy lock: while the subscription is
	// confirmed, and before. Why poll a subscribed lock: notifications are only a hint. Before the confirmation, intervals
	// grow from firstPoll, since a short wait may end before the confirmation comes.
	pollSubscribed = 2 * time.Second
	// manyNames is how many names a client may wait for before it polls each of them more rarely. So it polls at most
	// manyNames times in a pollSubscribed.
	manyNames        = 1000
	pollUnsubscribed = 250 * time.Millisecond
	firstPoll        = 10 * time.Millisecond
)

// The ends of a request that are not errors of a command.
var (
	errBusy    = errors.New("busy")
	errRefused = errors.New("refused")    // for good, see request.refused
	errCrowded = errors.New("crowded")    // by those who wait
	errTimeUp  = errors.New("time is up") // of the context, of WithWait, or of the client
)

// request is one call of Lock or TryLock on its way to a lease.
type request struct {
	keeper   *keeper
	protocol protocol
	hold     hold
	turn     turn // to ask, if it is not in a line that Redis keeps
	entered  bool // the owner may hold the lock already
	explicit bool // its owner was named by WithOwner: another process may hold the lock for it
	once     bool // one answer is enough, however long there is time to wait for it

	// settle makes the lease of a grant; newLease if nil.
	settle func(ctx context.Context, h hold, token int64, sentAt instant) (*Lease, error)

	ctx   context.Context // the caller's, with the values of its hooks
	asked int
	waitState
	told    bool    // the Wait hook was called
	sentAt  instant // the last time
	heard   bool    // Redis has answered at least once
	trouble outage
	lastErr error // why there was no answer the last time; nil if there was one
	reason  error // the same, or why before, if the last time there was no time for an answer
	doubt   bool  // the outcome of some request was unknown, of this hold or one before
	queued  bool  // it has stood in line
	refused error // why no waiting would help
	attempt int   // of a Once, when it was granted
	began   time.Time
}

func (l *locker) newRequest(ctx context.Context, config lockConfig) *request {
	k := l.keeper
	r, _ := k.requests.Get().(*request)
	*r = request{keeper: k, protocol: l.protocol}
	r.hold = hold{
		name: l.name, keys: l.keys, boxed: l.boxed, lockConfig: config,
		mayQueue: l.protocol.queued() != nil && config.wait != 0,
	}
	k.rename(&r.hold)
	if r.hold.owner != "" {
		r.entered, r.explicit = true, true
		return r
	}
	// Only a lease of this very lock is entered again. Under the lease of another one everybody is an owner of
	// their own: the tasks of one batch, say, which share the batch's lease, exclude each other here.
	if h := holdingFrom(ctx).of(k, r.hold.keys.lock); h != nil {
		r.hold.owner, r.hold.parent, r.entered = h.lease.hold.owner, h, true
	} else {
		r.hold.owner = r.hold.id
	}
	return r
}

// recycle lets another call use the request's memory. Only that of a Mutex on one server that was never in doubt is
// nobody else's when the call returns: otherwise something may still be busy with its hold.
func (r *request) recycle() {
	if _, plain := r.protocol.(mutex); plain && !r.doubt && !r.queued {
		r.keeper.requests.Put(r)
	}
}

// run asks until there is a lease or a reason to stop. Whatever the reason, it leaves nothing behind.
func (r *request) run(caller context.Context) (lease *Lease, err error) {
	r.ctx = caller
	if caller.Err() != nil {
		return nil, r.refusal(caller)
	}
	ctx, cancel := caller, context.CancelFunc(func() {})
	if r.hold.wait > 0 {
		ctx, cancel = context.WithTimeout(caller, r.hold.wait)
	}
	defer cancel()
	defer func() {
		if lease == nil { // also if a hook panics
			r.giveUp()
		}
	}()
	lease, err = r.wait(ctx)
	switch err {
	case errTimeUp:
		err = r.refusal(caller)
	case errCrowded:
		err = &NotAcquiredError{Name: r.hold.name, RetryAfter: max(r.holderTTL, 0), cause: r.keeper.crowd.err()}
	}
	return lease, err
}

// giveUp takes back what the request may have come to.
func (r *request) giveUp() {
	switch {
	case r.hold.unanswered > 0:
		r.keeper.giveUp(r.protocol, &r.hold, neverHeld)
	case r.queued:
		r.keeper.giveUp(r.protocol, &r.hold, onlyQueued)
	}
}

// wait asks once, or until there is an answer, if there is room for one more who waits.
func (r *request) wait(ctx context.Context) (*Lease, error) {
	if r.once || r.hold.wait == 0 {
		return r.answer(ctx, errTimeUp)
	}
	key := r.hold.keys.lock
	if !r.keeper.crowd.enter(key) {
		return r.answerCrowded(ctx)
	}
	defer r.keeper.crowd.leave(key)
	if line := r.protocol.queued(); line != nil {
		return r.waitInQueue(ctx, line)
	}
	return r.queue(ctx)
}

// answer asks without waiting; busy is the error of a lock that is held.
func (r *request) answer(ctx context.Context, busy error) (*Lease, error) {
	r.hold.mayQueue = false
	lease, err := r.ask(ctx)
	if err == errBusy {
		err = busy
	}
	return lease, err
}

// answerCrowded is for those who come when as many wait as may. Who holds the lock already may enter it all the same.
func (r *request) answerCrowded(ctx context.Context) (*Lease, error) {
	if r.entered {
		return r.answer(ctx, errCrowded)
	}
	r.holderTTL, _ = r.keeper.queue.told(r.hold.keys.lock, r.keeper.now())
	return nil, errCrowded
}

// queue asks when the turn has come.
func (r *request) queue(ctx context.Context) (*Lease, error) {
	if r.entered {
		// Whoever may hold the lock already does not queue: it would wait behind others for its own release.
		if lease, err := r.ask(ctx); err != errBusy {
			return lease, err
		}
	}
	for {
		lease, err := r.queueUp(ctx)
		if err != errAskAlone {
			return lease, err
		}
		if lease, err = r.ask(ctx); err != errBusy {
			return lease, err
		}
	}
}

// queueUp waits for its turn, and asks then.
func (r *request) queueUp(ctx context.Context) (*Lease, error) {
	t := &r.turn
	*t = turn{question: r.hold.question()}
	r.keeper.queue.enter(t, r.queueKey(), r.hold.ack)
	defer func() {
		t.leave()
		r.unregisterClient(t)
	}()
	if t.waits() {
		r.waits(0)
	}
	if err := t.wait(ctx, r.keeper.lifecycle.closing); err != nil {
		if r.holderTTL, r.heard = r.keeper.queue.told(t.key, r.keeper.now()); !r.heard {
			r.lastErr = errNotAnswered
		}
		return nil, ownRefusal(err)
	}
	if left, heard := r.keeper.queue.told(t.key, r.keeper.now()); heard {
		r.holderTTL, r.heard = left, true // Redis answers, whether or not there is time for another answer
	}
	lease, err := r.lead(ctx, t)
	switch {
	case lease != nil:
		t.tell(r.hold.ttl, r.keeper.now())
	case err == r.refused:
		t.share(err)
	case errors.Is(err, ErrUnavailable):
		t.fail(err) // nobody behind it would fare better, one after the other
	}
	return lease, err
}

// queueKey tells which line of this process the request stands in. An explicit owner has one of its own: it may get the
// lock in another process, and would not ask in time to enter it too while others of this process are before it.
func (r *request) queueKey() string {
	if r.explicit {
		return r.hold.keys.lock + "\x00" + r.hold.owner
	}
	return r.hold.keys.lock
}

// lead asks whenever there may be news: after a message, after the holder's time, and now and then.
func (r *request) lead(ctx context.Context, t *turn) (*Lease, error) {
	sub := r.protocol.subscribeIfActive(r.hold.keys)
	defer func() {
		if sub != nil {
			sub.close()
		}
	}()
	for polls := 0; ; polls++ {
		// Without a confirmed subscription, waking this client would be in vain.
		r.hold.registersClient = sub != nil && sub.confirmed() && r.keeper.hasOneServer()
		t.asks()
		if r.hold.registersClient {
			t.setRegistered(true)
		}
		lease, err := r.ask(ctx)
		if err != errBusy {
			if lease != nil && r.hold.registersClient {
				t.setRegistered(false) // acquire.lua has taken the client out
			}
			return lease, err
		}
		r.waits(0)
		t.tell(r.holderTTL, r.keeper.now())
		if sub == nil {
			// From the first refusal on. The confirmation counts as news, so the lock is looked at again once
			// no release can be missed any more.
			sub = r.protocol.subscribe(r.hold.keys)
		}
		limit := min(firstPoll<<min(polls, 10), pollUnsubscribed)
		if sub.confirmed() {
			limit = r.keeper.queue.pollInterval()
		}
		pause(ctx, r.nextPoll(limit), sub.notifications(), r.keeper.lifecycle.closing)
		if r.over(ctx) {
			return nil, errTimeUp
		}
		r.hold.woken = sub.startAsking() && !r.explicit // an explicit owner has a line of its own: the wake-up may have been for another one
	}
}

// nextPoll returns how long to wait for news: up to limit, or until the holder's time is over.
func (r *request) nextPoll(limit time.Duration) time.Duration {
	poll := limit/2 + rand.N(limit/2)
	if r.holderTTL >= 0 {
		// A little after the expiry, and not all at the same moment.
		poll = min(poll, r.holderTTL+time.Millisecond+rand.N(4*time.Millisecond))
	}
	return poll
}

// ask sends the request until it is answered.
func (r *request) ask(ctx context.Context) (*Lease, error) {
	patience := outagePatience
	if r.hold.wait == 0 {
		patience = 0
	}
	for {
		lease, err := r.askOnce(ctx)
		switch {
		case err == nil || err == errBusy:
			return lease, err
		case err == errRefused:
			return nil, r.refused
		case r.over(ctx):
			return nil, errTimeUp
		case r.hold.wait == 0 && errors.Is(err, ErrNotReplicated):
			return nil, r.unavailable(nil) // the replicas have had their time
		case !transient(err):
			return nil, errorf("holdfast: %s %q: %w", r.hold.kind(), r.hold.name, failure(ctx, r.hold.keys.lock, err))
		}
		longest := askingPause
		if slotMigrating(err) && patience > 0 {
			r.trouble.began, longest = time.Now(), movingPause // no outage, however long it takes
		}
		time, again := r.trouble.pause(patience, longest)
		if !again {
			return nil, r.unavailable(nil)
		}
		pause(ctx, time, nil, r.keeper.lifecycle.closing)
		if r.over(ctx) {
			return nil, errTimeUp
		}
	}
}

func (r *request) askOnce(ctx context.Context) (*Lease, error) {
	r.asked++
	r.disown(ctx)
	r.sentAt = r.keeper.now()
	a, err := r.protocol.acquire(ctx, &r.hold)
	r.lastErr = err
	if err == nil || !cutOff(err) {
		r.reason = err
	}
	if err != nil {
		if o := classify(err); o == unknown || o == failed {
			r.hold.unanswered++
		}
		r.doubt = r.doubt || r.hold.unanswered > 0
		return nil, err
	}
	r.doubt = r.doubt || r.hold.unanswered > 0
	r.heard = true
	if a.granted {
		r.sentAt, r.attempt, r.began = max(r.sentAt, a.sentAt), a.attempt, a.began
		lease, err := r.lease(ctx, a.token)
		if err == nil {
			if r.hold.unanswered > 0 {
				r.protocol.bar(&r.hold)
			}
			return lease, nil
		}
		r.renounce(ctx, errTooLate)
		return nil, r.lastErr
	}
	if a.gone {
		r.renounce(ctx, errGivenUp)
		return nil, r.lastErr
	}
	r.trouble = outage{}
	if a.refused != nil {
		r.refused = a.refused
		return nil, errRefused
	}
	r.waitState = a.waitState
	return nil, errBusy
}

func (r *request) lease(ctx context.Context, token int64) (*Lease, error) {
	if r.settle != nil {
		return r.settle(ctx, r.hold, token, r.sentAt)
	}
	return r.keeper.newLease(ctx, r.protocol, r.hold, grant{token, r.sentAt, r.hold.ttl})
}

// renounce gives the hold up and goes on under a new name. It does so before the next request, which would otherwise be
// refused because of it.
func (r *request) renounce(ctx context.Context, reason error) {
	r.lastErr = reason
	abandoned := r.hold // some of its servers may be asked longer than the first answers are waited for
	if _, err := r.protocol.release(ctx, &abandoned, neverHeld); err != nil {
		r.keeper.giveUp(r.protocol, &abandoned, neverHeld)
	}
	own := r.hold.owner == r.hold.id
	if r.keeper.rename(&r.hold); own {
		r.hold.owner = r.hold.id
	}
}

// waits tells the hook, once, that the call has begun to wait; 0 is an unknown position.
func (r *request) waits(position int) {
	if r.told {
		return
	}
	r.told = true
	r.keeper.hooks.wait(r.ctx, Wait{
		Name: r.hold.name, Owner: r.hold.owner, Position: position, RetryAfter: max(r.holderTTL, 0),
	})
}

// over reports whether there is no time left to ask.
func (r *request) over(ctx context.Context) bool {
	return ctx.Err() != nil || r.keeper.lifecycle.isClosed()
}
