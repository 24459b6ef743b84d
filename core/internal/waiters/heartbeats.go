package waiters

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/lifecycle"
	"github.com/holdfast-go/holdfast/core/internal/lockscript"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// Heartbeats sends the heartbeats of this client's waiters, which keep their places in the queues in Redis. One timer serves
// all waiters. The waiters of one queue share commands, and the commands share round trips with renewals. The replies
// update the wait state of the waiters.
type Heartbeats struct {
	instance *lockscript.Instance
	now      clock.Clock

	mu     sync.Mutex
	groups map[string]*waiterGroup // by the lock's key
	timer  *time.Timer             // nil: not set
}

// waiterGroup is this client's waiters in one queue.
type waiterGroup struct {
	places map[string]*Place // by hold id
	unsent int               // commands that have not been sent yet
}

// Place is one waiter's place in a queue.
type Place struct {
	C          chan struct{} // notified of changes
	keys       lockscript.Keys
	id         string
	heartbeats *Heartbeats

	// Guarded by the mutex of heartbeats.
	lockscript.WaitState
	AskedAt    clock.Instant // when the request with this wait state was sent: the waiter was in the queue after that
	AnsweredAt clock.Instant
	MustAsk    bool // the waiter must ask: it is not in the queue, or its owner holds the lock by another request
}

// maxWaitersPerHeartbeat bounds the waiters in one command, and so the time that the server is blocked by it.
const maxWaitersPerHeartbeat = 64

// NewHeartbeats returns heartbeats that are sent to s.
func NewHeartbeats(s *lockscript.Instance, now clock.Clock) *Heartbeats {
	return &Heartbeats{instance: s, now: now, groups: make(map[string]*waiterGroup)}
}

// Register starts heartbeats for a place in the queue that was just taken. The caller must call unregister.
func (b *Heartbeats) Register(h *lockscript.Hold, s lockscript.WaitState, askedAt clock.Instant) *Place {
	p := &Place{C: make(chan struct{}, 1), keys: h.Keys, id: h.ID, heartbeats: b}
	p.Update(s, askedAt)
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.groups[h.Keys.Lock]
	if c == nil {
		c = &waiterGroup{places: make(map[string]*Place)}
		b.groups[h.Keys.Lock] = c
	}
	c.places[h.ID] = p
	if b.timer == nil {
		b.timer = time.AfterFunc(lockscript.HeartbeatInterval, b.tick)
	}
	return p
}

// Unregister ends the heartbeats.
func (p *Place) Unregister() {
	b := p.heartbeats
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.groups[p.keys.Lock]
	delete(c.places, p.id)
	if len(c.places) == 0 {
		delete(b.groups, p.keys.Lock)
	}
}

// State returns a copy of the place with its present wait state.
func (p *Place) State() Place {
	p.heartbeats.mu.Lock()
	defer p.heartbeats.mu.Unlock()
	return *p
}

// Update records the reply to a request of the waiter itself.
func (p *Place) Update(s lockscript.WaitState, askedAt clock.Instant) {
	p.heartbeats.mu.Lock()
	defer p.heartbeats.mu.Unlock()
	p.WaitState, p.AskedAt, p.AnsweredAt, p.MustAsk = s, askedAt, p.heartbeats.now(), false
}

// tick sends a heartbeat for every place. A group whose last heartbeat has not been sent yet is skipped.
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
		b.timer = time.AfterFunc(lockscript.HeartbeatInterval, b.tick)
	}
	b.mu.Unlock()
	b.instance.Exec.SubmitRenewals(calls)
}

// commandsLocked makes the commands for one group.
func (b *Heartbeats) commandsLocked(c *waiterGroup) []*transport.Command {
	var calls []*transport.Command
	var batch []*Place
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

func (b *Heartbeats) newHeartbeatLocked(c *waiterGroup, places []*Place) *transport.Command {
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

// answered records a reply. If there is none, the waiters ask by themselves after heartbeatTimeout.
func (b *Heartbeats) answered(answer *transport.Command, places []*Place) {
	list, err := lockscript.Integers(answer.Reply, 3+len(places))
	if answer.Err != nil || err != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, p := range places {
		if p.AskedAt >= answer.SentAt {
			continue // the waiter has asked since
		}
		before := list[3+i]
		if before < 0 {
			p.MustAsk = true
		} else {
			p.WaitState = lockscript.WaitState{
				HolderTTL: time.Duration(list[0]) * time.Millisecond, Ahead: int(before), LastToken: list[1], Broadcasts: list[2] == 1,
			}
			p.AskedAt, p.AnsweredAt = answer.SentAt, b.now()
		}
		if before <= 0 {
			lifecycle.Signal(p.C)
		}
	}
}
