package acquire

import (
	"context"
	"math/rand/v2"
	"sync"
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
// holder, because a release of other strategies grants the lock to the first waiter by a message.
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
//  3. A heartbeat is answered: the last token is the one of step 1, or greater.
//  4. The message arrives. Its token is not greater than the last one, so it is ignored.
func (w *queuedWaiter) acceptMessage(token int64, slot int) {
	at := w.place.State()
	ttl := min(w.Hold.TTL, script.PlaceTTL)
	switch {
	case at.LastToken == 0 || token <= at.LastToken:
		return // a message about an older grant, or about none; or the last token is unknown
	case slot < 0 || slot > 0 && slot >= w.Hold.Slots():
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

// Heartbeats sends the heartbeats of this client's waiters, which keep their places in the queues in Redis. One timer serves
// all waiters. The waiters of one queue share commands, and the commands share round trips with renewals. The replies
// update the wait state of the waiters. It is safe for concurrent use.
//
// The timer runs only while there are places. So a client without queued waiters sends nothing.
type Heartbeats struct {
	instance *script.Instance
	now      keepalive.Clock

	mu sync.Mutex

	// Guarded by mu, with the fields of all groups and places. No command is sent while it is locked.
	groups map[string]*waiterGroup // by the lock's key; none is empty
	timer  *time.Timer             // nil if there are no places; otherwise tick is due
}

// waiterGroup is this client's waiters in one queue. It lasts from the first register to the last unregister. Commands that
// are in flight then still refer to it, without effect on a later group of the same queue.
type waiterGroup struct {
	places map[string]*place // by hold ID
	unsent int               // commands that wait in the renewal queue; none of them was sent
}

// place is one waiter's place in a queue. The waiter reads it by State, and heartbeats write to it.
type place struct {
	C          chan struct{} // receives a value when the waiter is first in the queue, or must ask; it holds one value
	keys       script.Keys
	id         string // of the hold
	heartbeats *Heartbeats

	// Guarded by the mutex of heartbeats.
	script.WaitState
	// AskedAt is when the request or heartbeat with this wait state was sent. Its reply says that the waiter is in the queue,
	// so a grant is later than AskedAt.
	AskedAt    keepalive.Instant
	AnsweredAt keepalive.Instant // when its reply came, from which HolderTTL counts
	MustAsk    bool              // true if the place is gone, or the owner has the lock by another request; until update
}

// maxWaitersPerHeartbeat bounds the waiters in one command, and so the time that the server is blocked by it.
const maxWaitersPerHeartbeat = 64

// NewHeartbeats returns heartbeats that are sent to s. It starts no timer.
func NewHeartbeats(s *script.Instance, now keepalive.Clock) *Heartbeats {
	return &Heartbeats{instance: s, now: now, groups: make(map[string]*waiterGroup)}
}

// register starts heartbeats for a place that the hold has just taken, with the wait state of that reply. askedAt is when
// the request was sent. The caller must call unregister.
func (b *Heartbeats) register(h *script.Hold, s script.WaitState, askedAt keepalive.Instant) *place {
	p := &place{C: make(chan struct{}, 1), keys: h.Keys, id: h.ID, heartbeats: b}
	p.update(s, askedAt)
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.groups[h.Keys.Lock]
	if c == nil {
		c = &waiterGroup{places: make(map[string]*place)}
		b.groups[h.Keys.Lock] = c
	}
	c.places[h.ID] = p
	if b.timer == nil {
		b.timer = time.AfterFunc(script.HeartbeatInterval, b.tick)
	}
	return p
}

// unregister ends the heartbeats of the place. It must be called once. The place stays in the queue for up to PlaceTTL,
// unless the caller releases the hold.
func (p *place) unregister() {
	b := p.heartbeats
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.groups[p.keys.Lock]
	delete(c.places, p.id)
	if len(c.places) == 0 {
		delete(b.groups, p.keys.Lock)
	}
}

// State returns a copy of the place, so that the waiter sees fields of one reply together. The copy is not updated.
func (p *place) State() place {
	p.heartbeats.mu.Lock()
	defer p.heartbeats.mu.Unlock()
	return *p
}

// update records the reply to a request of the waiter itself, which was sent at askedAt. Replies to heartbeats that were
// sent before are ignored from then on. So MustAsk is false until a later heartbeat.
func (p *place) update(s script.WaitState, askedAt keepalive.Instant) {
	p.heartbeats.mu.Lock()
	defer p.heartbeats.mu.Unlock()
	p.WaitState, p.AskedAt, p.AnsweredAt, p.MustAsk = s, askedAt, p.heartbeats.now(), false
}

// tick sends a heartbeat for every place, and sets the timer again if there is one. The timer calls it.
//
// A group is skipped while commands of its last heartbeat wait in the queue, because while Redis does not answer, each tick
// would make the queue longer, and the commands would be sent all at once afterwards. Nothing is skipped for a command that was
// sent and has no answer yet: several heartbeats may get lost within PlaceTTL.
func (b *Heartbeats) tick() {
	b.mu.Lock()
	var calls []*transport.Command
	for _, c := range b.groups {
		if c.unsent == 0 {
			calls = append(calls, b.commandsLocked(c)...)
		}
	}
	b.timer = nil
	if len(b.groups) > 0 {
		b.timer = time.AfterFunc(script.HeartbeatInterval, b.tick)
	}
	b.mu.Unlock()
	b.instance.Exec.SubmitRenewals(calls)
}

// commandsLocked makes the commands for one group, each for at most maxWaitersPerHeartbeat places. The order of places is
// the order of the map, so it differs from tick to tick.
func (b *Heartbeats) commandsLocked(c *waiterGroup) []*transport.Command {
	var calls []*transport.Command
	var batch []*place
	for _, p := range c.places {
		batch = append(batch, p)
		if len(batch) == maxWaitersPerHeartbeat {
			calls = append(calls, b.newHeartbeatLocked(c, batch))
			batch = nil
		}
	}
	if len(batch) > 0 {
		calls = append(calls, b.newHeartbeatLocked(c, batch))
	}
	return calls
}

// newHeartbeatLocked makes the command for these places of one group, and counts it as unsent. places must not be empty.
func (b *Heartbeats) newHeartbeatLocked(c *waiterGroup, places []*place) *transport.Command {
	k := places[0].keys
	ids := make([]any, len(places))
	for i, p := range places {
		ids[i] = p.id
	}
	c.unsent++
	beat := b.instance.Heartbeat(k, ids...)
	beat.OnSend = func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		c.unsent--
	}
	beat.Done = func(answer *transport.Command) { b.answered(answer, places) }
	return beat
}

// answered records the reply to a heartbeat of these places. If there is none, it does nothing: the waiters ask by
// themselves once no reply has come for some heartbeats. Some places may have been unregistered meanwhile, which does no
// harm.
//
// A reply must not replace the reply to a later request of the waiter. Otherwise:
//
//  1. Redis has dropped the place of a waiter, because heartbeats were late.
//  2. The next heartbeat is sent. Its reply says: not in the queue.
//  3. Meanwhile the waiter asks by itself, takes a new place, and calls update.
//  4. The reply of step 2 arrives. It would have the waiter ask again in vain.
func (b *Heartbeats) answered(answer *transport.Command, places []*place) {
	if answer.Err != nil {
		return
	}
	state, ahead, err := script.ReadHeartbeat(answer.Reply, len(places))
	if err != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, p := range places {
		if p.AskedAt >= answer.SentAt {
			continue // the waiter has asked since, see above
		}
		before := ahead[i]
		if before < 0 {
			p.MustAsk = true
		} else {
			p.WaitState, p.Ahead = state, before
			p.AskedAt, p.AnsweredAt = answer.SentAt, b.now()
		}
		if before <= 0 { // the first in the queue has to watch the end of the holder's lease
			keepalive.Signal(p.C)
		}
	}
}
