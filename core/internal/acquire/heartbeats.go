package acquire

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

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
// A group is skipped while commands of its last heartbeat wait in the queue. Why: while Redis does not answer, each tick
// would make the queue longer, and the commands would be sent all at once afterwards. Nothing is skipped for a command that
// was sent and has no answer yet: several heartbeats may get lost within PlaceTTL.
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
// that of the map, so it differs from tick to tick.
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
// A reply must not replace that of a later request of the waiter. Why:
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
