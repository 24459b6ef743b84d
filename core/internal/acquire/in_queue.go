package acquire

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// heartbeatTimeout is how long a queued waiter waits without a reply to a heartbeat before it asks Redis itself. It is
// shorter than script.PlaceTTL, so that the request comes before the place is lost.
const heartbeatTimeout = 3 * script.HeartbeatInterval

// queuedWaiter is a request in a queue in Redis. It need not ask again: a message grants it the lock, and heartbeats keep
// its place. It asks only if the message or its place may be lost.
type queuedWaiter struct {
	*Acquisition
	place     *place                // nil before the hold was queued
	own       *transport.Subscriber // to messages with the hold ID of this waiter; nil until it must not miss them
	broadcast *transport.Subscriber // to broadcasts, while the waiter needs them; nil otherwise
}

// waitInQueue asks for the lock, and waits in the queue in Redis if it is held. It asks again whenever awaitGrant says so.
//
// The address of messages and the place have the ID of the hold. So both are made anew if ask has replaced the hold.
func (a *Acquisition) waitInQueue(ctx context.Context) error {
	a.want.Place = true
	w := &queuedWaiter{Acquisition: a}
	defer w.unregister()
	for {
		channel := a.Queue.GrantChannel(a.Hold.Keys)
		if w.own == nil {
			// Messages from now on must not be missed. If the channel is not subscribed yet, the confirmation of the
			// subscription below makes the waiter ask again.
			w.own = a.Queue.Subs.SubscribeIfActive(channel, a.Hold.ID)
		}
		id := a.Hold.ID
		if err := a.ask(ctx); err != errBusy {
			return err
		}
		if id != a.Hold.ID {
			w.unregister()
		}
		if w.own == nil {
			w.own = a.Queue.Subs.Subscribe(channel, a.Hold.ID)
		}
		w.register()
		if err := w.awaitGrant(ctx); err != nil || a.accepted {
			return err
		}
	}
}

// register records that the request was queued, and starts or updates its heartbeats. From then on cleanUp must release the
// hold.
func (w *queuedWaiter) register() {
	w.queued = true
	if w.place == nil {
		w.place = w.Env.Heartbeats.register(&w.Hold, w.WaitState, w.sentAt)
	} else {
		w.place.update(w.WaitState, w.sentAt)
	}
	w.reportWait(w.WaitState.Ahead+1, w.place)
}

// unregister ends subscriptions and heartbeats. The place in Redis stays until heartbeats are missed, or the hold is
// released.
func (w *queuedWaiter) unregister() {
	for _, l := range []*transport.Subscriber{w.own, w.broadcast} {
		if l != nil {
			l.Close()
		}
	}
	if w.place != nil {
		w.place.unregister()
	}
	w.own, w.broadcast, w.place = nil, nil, nil
}

// awaitGrant waits until a message grants the lock. It returns nil with accepted set if the caller has a lease, nil without
// it if the waiter must ask Redis, and ErrTimeUp.
//
// The waiter asks if a message granted nothing that can be used, a broadcast came, or its place is gone. It also asks if
// there was no reply to heartbeats until nextQueuePoll.
func (w *queuedWaiter) awaitGrant(ctx context.Context) error {
	for {
		at := w.place.State()
		w.WaitState = at.WaitState
		w.Caller.StillWaiting(w.call.Since)
		if at.MustAsk {
			return nil
		}
		var broadcasts <-chan struct{}
		if l := w.listenToBroadcasts(at.Broadcasts && at.Ahead == 0); l != nil {
			broadcasts = l.C
		}
		timer := time.NewTimer(nextQueuePoll(&at, w.Env.Now()))
		select {
		case <-w.own.C:
			timer.Stop()
			w.acceptMessage(w.own.LastGrant())
			return nil
		case <-broadcasts:
			timer.Stop()
			return nil
		case <-w.place.C:
		case <-ctx.Done():
		case <-w.Env.Operations.Closing:
		case <-timer.C:
			if w.place.State().AskedAt == at.AskedAt { // otherwise a heartbeat was answered just now
				return nil
			}
		}
		timer.Stop()
		if w.Env.timeUp(ctx) {
			return ErrTimeUp
		}
	}
}

// listenToBroadcasts starts or ends the subscription to broadcasts, which a Mutex and Redisson publish when they unlock. It
// returns nil if there is no subscription. Only the first waiter in the queue needs one, and only while such a lock is the
// holder. Why: a release of other strategies grants the lock to the first waiter by a message.
func (w *queuedWaiter) listenToBroadcasts(listen bool) *transport.Subscriber {
	switch {
	case listen && w.broadcast == nil:
		w.broadcast = w.Queue.Subs.Subscribe(w.Hold.Keys.Channel, "")
	case !listen && w.broadcast != nil:
		w.broadcast.Close()
		w.broadcast = nil
	}
	return w.broadcast
}

// nextQueuePoll returns how long to wait before asking Redis: until heartbeatTimeout, or for the first waiter in the queue
// until the holder's lease expires.
func nextQueuePoll(p *place, now keepalive.Instant) time.Duration {
	poll := p.AnsweredAt.Add(heartbeatTimeout).Sub(now)
	if p.Ahead == 0 && p.HolderTTL >= 0 {
		// A little after the expiry: Redis counts whole milliseconds.
		poll = min(poll, p.AnsweredAt.Add(p.HolderTTL).Sub(now)+time.Millisecond+rand.N(4*time.Millisecond))
	}
	return max(poll, time.Millisecond)
}

// acceptMessage hands a grant by message to the caller, unless Redis must be asked. Then it leaves accepted false, and the
// next request finds out what was granted: Redis answers a repetition with the grant.
//
// Validity counts from the sending of the last request or heartbeat that was answered. That answer said "wait", so the
// grant is newer, and the local deadline is conservative. A message may be late:
//
//  1. The waiter is granted the lock by a message, which is delayed.
//  2. The grant expires, because no holder renews it. Others have the lock.
//  3. A heartbeat is answered: the last token is that of step 1, or greater.
//  4. The message arrives. Its token is not greater than the last one, so it is ignored.
func (w *queuedWaiter) acceptMessage(token int64, slot int) {
	at := w.place.State()
	ttl := min(w.Hold.TTL, script.PlaceTTL)
	switch {
	case at.LastToken == 0 || token <= at.LastToken:
		return // a message about an older grant, or about none; or the last token is unknown
	case token > script.TokenLimit, slot < 0 || slot > 0 && slot >= w.Hold.Slots():
		return // another program has published it
	case !w.RenewsGrants:
		return
	case w.Hold.Ack.Wanted():
		return // replicas have not acknowledged it yet
	case w.Env.Now() > at.AskedAt.Add(ttl/2):
		return // a renewal might come too late
	}
	w.Hold.Slot = slot
	err := w.Caller.Accept(w.ctx, &w.Hold, script.Grant{Token: token, SentAt: at.AskedAt, TTL: ttl, Slot: slot})
	if err == nil {
		w.markAccepted()
	}
}
