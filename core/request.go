package core

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	// outagePatience is how long a waiting Lock endures a Redis that does not answer.
	outagePatience = 5 * time.Second
	// pollHeard and pollUnheard bound the time between two looks at a busy lock, whatever is or is not heard on
	// the subscription, which is only a hint: the first while a subscription is known to be confirmed.
	pollHeard   = 2 * time.Second
	pollUnheard = 250 * time.Millisecond
)

// request is one call of Lock or TryLock on its way to a lease.
type request struct {
	client   *Client
	protocol protocol
	hold     hold
	entered  bool // the owner may hold the lock already

	asked    int
	sentAt   instant // the last time
	answered bool    // at least once
	trouble  outage
	left     time.Duration // of the present holder's lease
	lastErr  error         // why there was no answer the last time; nil if there was one
	doubt    bool          // of some earlier try the outcome is unknown: it may have been, or yet be, granted
}

func (l *locker) newRequest(ctx context.Context, config lockConfig) *request {
	c := l.client
	r := &request{client: c, protocol: l.protocol}
	r.hold = hold{
		name: l.name, keys: newKeys(c.prefix + l.name), owner: config.owner, id: c.newID(), lockConfig: config,
	}
	switch outer := holdingFrom(ctx); {
	case r.hold.owner != "":
		r.entered = true // perhaps, by another process
	case outer != nil:
		r.hold.owner = outer.owner
		r.entered = outer.holds(r.hold.keys.lock)
	default:
		r.hold.owner = r.hold.id
	}
	return r
}

// run asks until there is a lease or a reason to stop. Whatever the reason, it leaves nothing behind.
func (r *request) run(caller context.Context) (*Lease, error) {
	if caller.Err() != nil {
		return nil, r.refusal(caller)
	}
	ctx, cancel := caller, context.CancelFunc(func() {})
	if r.hold.wait > 0 {
		ctx, cancel = context.WithTimeout(caller, r.hold.wait)
	}
	defer cancel()
	lease, err := r.wait(ctx)
	if lease != nil {
		return lease, nil
	}
	if r.doubt {
		r.client.giveUp(r.protocol, &r.hold)
	}
	if err != nil {
		return nil, err
	}
	return nil, r.refusal(caller)
}

// wait asks when the turn has come. Like the functions below, it returns neither lease nor error if the lock
// was still held when the time was up.
func (r *request) wait(ctx context.Context) (*Lease, error) {
	if r.entered || r.hold.wait == 0 {
		// Whoever may hold the lock already does not queue: it would wait behind others for its own release.
		lease, err := r.ask(ctx)
		if lease != nil || err != nil || r.hold.wait == 0 {
			return lease, err
		}
	}
	t := r.client.queue.enter(r.hold.keys.lock)
	defer t.leave()
	if !t.wait(ctx, r.client.tasks.closing) {
		r.left = t.left()
		return nil, nil
	}
	return r.lead(ctx, t)
}

// lead asks whenever there may be news: after a message, after the holder's time, and now and then.
func (r *request) lead(ctx context.Context, t *turn) (*Lease, error) {
	var news *listener
	for {
		lease, err := r.ask(ctx)
		if lease != nil || err != nil || r.over(ctx) {
			return lease, err
		}
		t.told(r.left)
		if news == nil {
			// From the first refusal on. The confirmation counts as news, so the lock is looked at again once
			// no release can be missed any more.
			news = r.client.listen.to(r.protocol.channel(r.hold.keys))
			defer news.close()
		}
		if !r.sleep(ctx, news) {
			return nil, nil
		}
	}
}

// sleep waits for news or the next look; it reports false if the time is up.
func (r *request) sleep(ctx context.Context, news *listener) bool {
	limit := pollUnheard
	if news.confirmed() {
		limit = pollHeard
	}
	pause := limit/2 + rand.N(limit/2)
	if r.left >= 0 {
		// A little after the expiry, and not all at the same moment.
		pause = min(pause, r.left+time.Millisecond+rand.N(4*time.Millisecond))
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-news.C:
	case <-timer.C:
	case <-ctx.Done():
	case <-r.client.tasks.closing:
	}
	return !r.over(ctx)
}

// ask sends the request until it is answered.
func (r *request) ask(ctx context.Context) (*Lease, error) {
	patience := outagePatience
	if r.hold.wait == 0 {
		patience = 0
	}
	for {
		lease, err := r.askOnce(ctx)
		if lease != nil || !transient(err) || r.over(ctx) {
			return lease, r.final(ctx, err)
		}
		pause, again := r.trouble.pause(patience)
		if !again {
			return nil, r.unavailable(nil)
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
		case <-r.client.tasks.closing:
		}
		timer.Stop()
		if r.over(ctx) {
			return nil, nil
		}
	}
}

// final passes on an error that asking again would not change.
func (r *request) final(ctx context.Context, err error) error {
	if err == nil || transient(err) {
		return nil
	}
	return fmt.Errorf("holdfast: lock %q: %w", r.hold.name, failure(ctx, r.hold.keys.lock, err))
}

func (r *request) askOnce(ctx context.Context) (*Lease, error) {
	r.asked++
	r.sentAt = r.client.now()
	a, err := r.protocol.acquire(ctx, &r.hold)
	if err != nil {
		r.lastErr = err
		r.doubt = r.doubt || !didNotRun(err)
		return nil, err
	}
	r.lastErr = nil
	r.answered = true
	r.trouble = outage{}
	switch {
	case a.granted:
		lease, err := r.client.newLease(ctx, r.protocol, r.hold, a.token, r.sentAt)
		if err != nil {
			r.renounce()
		}
		if errors.Is(err, errExpired) {
			err = errNotAnswered // in time; what was granted is over
		}
		return lease, err
	case a.gone:
		r.renounce()
		return nil, errNotAnswered
	}
	r.left = a.left
	return nil, nil
}

// renounce gives a granted hold back and goes on under a new name.
func (r *request) renounce() {
	r.client.giveUp(r.protocol, &r.hold)
	fresh := r.client.newID()
	if r.hold.owner == r.hold.id {
		r.hold.owner = fresh
	}
	r.hold.id = fresh
}

// over reports whether there is no time left to ask.
func (r *request) over(ctx context.Context) bool {
	return ctx.Err() != nil || r.client.tasks.isClosed()
}

// refusal is the error of a request whose time was up.
func (r *request) refusal(caller context.Context) error {
	cause := caller.Err()
	if cause != nil && context.Cause(caller) != cause {
		cause = errors.Join(cause, context.Cause(caller))
	}
	switch {
	case cause == nil && r.client.tasks.isClosed():
		return ErrClosed
	case r.lastErr != nil && !r.cutOff():
		return r.unavailable(cause)
	case r.lastErr != nil && r.unheard():
		cause = errors.Join(ErrUnavailable, cause)
	}
	return &NotAcquiredError{Name: r.hold.name, RetryAfter: max(r.left, 0), cause: cause}
}

// cutOff reports whether the last request has no answer only because the time was up before.
func (r *request) cutOff() bool {
	for _, end := range []error{errNotSent, errNotAnswered, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(r.lastErr, end) {
			return true
		}
	}
	return false
}

// unheard reports whether that looks like an outage: Redis has never answered this call, or not for a while.
func (r *request) unheard() bool {
	return !r.answered || r.client.now().sub(r.sentAt) >= stall
}

// unavailable is the error of a request that met with an outage.
func (r *request) unavailable(cause error) error {
	err := fmt.Errorf("holdfast: lock %q: %w: %w", r.hold.name, ErrUnavailable, r.lastErr)
	if cause != nil {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return err
}
