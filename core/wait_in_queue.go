package core

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/lockscript"
	"github.com/holdfast-go/holdfast/core/internal/pubsub"
	"github.com/holdfast-go/holdfast/core/internal/waiters"
)

// heartbeatTimeout is how long a queued waiter waits without a reply to a heartbeat before it asks Redis itself.
const heartbeatTimeout = 3 * lockscript.HeartbeatInterval

// queuedWaiter is a request in a queue in Redis. It need not ask again: a message grants it the lock, and heartbeats keep
// its place. It asks only if the message or its place may be lost.
type queuedWaiter struct {
	*acquisition
	lock      *lockscript.Queue
	place     *waiters.Place
	own       *pubsub.Subscriber // to messages with the hold id of this waiter
	broadcast *pubsub.Subscriber // to broadcasts, while the waiter needs them; nil otherwise
}

// waitInQueue asks for the lock, and waits in the queue in Redis if it is held.
func (r *acquisition) waitInQueue(ctx context.Context, line *lockscript.Queue) (*Lease, error) {
	w := &queuedWaiter{acquisition: r, lock: line}
	defer w.unregister()
	for {
		channel := line.Channel(r.hold.Keys)
		if w.own == nil {
			// Messages from now on must not be missed. If the channel is not subscribed yet, the confirmation of the
			// subscription below makes the waiter ask again.
			w.own = line.Subs.SubscribeIfActive(channel, r.hold.ID)
		}
		id := r.hold.ID
		lease, err := r.ask(ctx)
		if err != errBusy {
			return lease, err
		}
		if id != r.hold.ID {
			w.unregister()
		}
		if w.own == nil {
			w.own = line.Subs.Subscribe(channel, r.hold.ID)
		}
		w.register()
		if lease, err := w.awaitGrant(ctx); lease != nil || err != nil {
			return lease, err
		}
	}
}

// register records that the request was queued, and starts or updates its heartbeats.
func (w *queuedWaiter) register() {
	w.queued = true
	if w.place == nil {
		w.place = w.keeper.heartbeats.Register(&w.hold, w.WaitState, w.sentAt)
	} else {
		w.place.Update(w.WaitState, w.sentAt)
	}
	w.reportWait(w.WaitState.Ahead + 1)
}

// unregister ends subscriptions and heartbeats. The place in Redis stays until heartbeats are missed.
func (w *queuedWaiter) unregister() {
	for _, l := range []*pubsub.Subscriber{w.own, w.broadcast} {
		if l != nil {
			l.Close()
		}
	}
	if w.place != nil {
		w.place.Unregister()
	}
	w.own, w.broadcast, w.place = nil, nil, nil
}

// awaitGrant waits until a message grants the lock. It returns neither a lease nor an error if the waiter must ask Redis.
func (w *queuedWaiter) awaitGrant(ctx context.Context) (*Lease, error) {
	for {
		at := w.place.State()
		w.WaitState = at.WaitState
		if at.MustAsk {
			return nil, nil
		}
		var broadcasts <-chan struct{}
		if l := w.listenToBroadcasts(at.Broadcasts && at.Ahead == 0); l != nil {
			broadcasts = l.C
		}
		timer := time.NewTimer(nextQueuePoll(&at, w.keeper.now()))
		select {
		case <-w.own.C:
			timer.Stop()
			return w.granted(w.own.LastToken()), nil
		case <-broadcasts:
			timer.Stop()
			return nil, nil
		case <-w.place.C:
		case <-ctx.Done():
		case <-w.keeper.operations.Closing:
		case <-timer.C:
			if w.place.State().AskedAt == at.AskedAt {
				return nil, nil
			}
		}
		timer.Stop()
		if w.timeUp(ctx) {
			return nil, waiters.ErrTimeUp
		}
	}
}

// listenToBroadcasts starts or ends the subscription to broadcasts, which a Mutex and Redisson publish when they unlock.
// Only the first waiter in the queue needs them. It returns nil if there is no subscription.
func (w *queuedWaiter) listenToBroadcasts(listen bool) *pubsub.Subscriber {
	switch {
	case listen && w.broadcast == nil:
		w.broadcast = w.lock.Subs.Subscribe(w.hold.Keys.Channel, "")
	case !listen && w.broadcast != nil:
		w.broadcast.Close()
		w.broadcast = nil
	}
	return w.broadcast
}

// nextQueuePoll returns how long to wait before asking Redis: until heartbeatTimeout, or for the first waiter in the queue
// until the holder's lease expires.
func nextQueuePoll(p *waiters.Place, now clock.Instant) time.Duration {
	poll := p.AnsweredAt.Add(heartbeatTimeout).Sub(now)
	if p.Ahead == 0 && p.HolderTTL >= 0 {
		// A little after the expiry: Redis counts whole milliseconds.
		poll = min(poll, p.AnsweredAt.Add(p.HolderTTL).Sub(now)+time.Millisecond+rand.N(4*time.Millisecond))
	}
	return max(poll, time.Millisecond)
}

// granted makes a lease from a grant by message. It returns nil if Redis must be asked. Validity counts from the sending of
// the last request that was answered. That answer said "wait", so the grant is newer, and the local deadline is
// conservative. A message about a grant that has ended already has a token not greater than the last one in that answer.
func (w *queuedWaiter) granted(token int64) *Lease {
	at := w.place.State()
	ttl := min(w.hold.TTL, lockscript.PlaceTTL)
	switch {
	case at.LastToken == 0 || token <= at.LastToken:
		return nil // a message about an older grant, or about none; or the last token is unknown
	case w.config.fixed || w.hold.MinHold > 0:
		return nil // their time begins when Redis is asked for it
	case w.hold.Ack.Wanted():
		return nil // replicas have not acknowledged it yet
	case w.keeper.now() > at.AskedAt.Add(ttl/2):
		return nil // a renewal might come too late
	}
	lease, err := w.keeper.newLease(w.ctx, w.protocol, w.hold, grant{token, at.AskedAt, ttl, w.config.fixed, w.config.maxHold})
	if err != nil {
		return nil
	}
	return lease
}
