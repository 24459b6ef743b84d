package core

import (
	"sync"
	"time"
)

// beats gives the signs of life that keep the places of this client's waiters in their lines, all with one timer:
// the waiters of one line share commands, and those share round trips with renewals. The answers tell the waiters
// how they stand.
type beats struct {
	server *server
	now    clock

	mu    sync.Mutex
	lines map[string]*company // by the lock's key
	timer *time.Timer         // nil: not set
}

// company is this client's waiters in one line.
type company struct {
	places map[string]*place // by hold id
	flying int               // commands that have not been sent yet
}

// place is one waiter's place in a line.
type place struct {
	C     chan struct{} // told of news
	keys  keys
	id    string
	beats *beats

	// Guarded by the mutex of beats.
	standing
	askedAt    instant // when the answer that said so was asked for: the waiter was in line after that
	answeredAt instant
	gone       bool // it should ask: it is not in line, or its owner is in by another request
}

// maxCompany bounds the waiters in one command, and so how long the server is busy with it.
const maxCompany = 64

func newBeats(s *server, now clock) *beats {
	return &beats{server: s, now: now, lines: make(map[string]*company)}
}

// keep keeps a place that was just taken.
func (b *beats) keep(h *hold, s standing, askedAt instant) *place {
	p := &place{C: make(chan struct{}, 1), keys: h.keys, id: h.id, beats: b}
	p.stands(s, askedAt)
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.lines[h.keys.lock]
	if c == nil {
		c = &company{places: make(map[string]*place)}
		b.lines[h.keys.lock] = c
	}
	c.places[h.id] = p
	if b.timer == nil {
		b.timer = time.AfterFunc(beat, b.tick)
	}
	return p
}

// leave ends the signs of life.
func (p *place) leave() {
	b := p.beats
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.lines[p.keys.lock]
	delete(c.places, p.id)
	if len(c.places) == 0 {
		delete(b.lines, p.keys.lock)
	}
}

// look returns how the waiter stands.
func (p *place) look() place {
	p.beats.mu.Lock()
	defer p.beats.mu.Unlock()
	return *p
}

// stands takes in an answer to a request of the waiter itself.
func (p *place) stands(s standing, askedAt instant) {
	p.beats.mu.Lock()
	defer p.beats.mu.Unlock()
	p.standing, p.askedAt, p.answeredAt, p.gone = s, askedAt, p.beats.now(), false
}

// tick sends a sign of life for every place. What is so late that it has not even left is not sent again.
func (b *beats) tick() {
	b.mu.Lock()
	var calls []*command
	for _, c := range b.lines {
		if c.flying == 0 {
			calls = append(calls, b.calls(c)...)
		}
	}
	b.timer = nil
	if len(b.lines) > 0 {
		b.timer = time.AfterFunc(beat, b.tick)
	}
	b.mu.Unlock()
	b.server.exec.renew(calls)
}

// calls makes the commands for one company; b.mu is held.
func (b *beats) calls(c *company) []*command {
	var calls []*command
	var together []*place
	for _, p := range c.places {
		together = append(together, p)
		if len(together) == maxCompany {
			calls = append(calls, b.call(c, together))
			together = nil
		}
	}
	if len(together) > 0 {
		calls = append(calls, b.call(c, together))
	}
	return calls
}

func (b *beats) call(c *company, places []*place) *command {
	k := places[0].keys
	ids := make([]any, len(places))
	for i, p := range places {
		ids[i] = p.id
	}
	c.flying++
	beat := newCommand(beatScript, k.line(), b.server.lineArgs(k, ids...)...)
	beat.onSend = func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		c.flying--
	}
	beat.done = func(answer *command) { b.answered(answer, places) }
	return beat
}

// answered takes in what Redis says. If it says nothing, the waiters will ask by themselves.
func (b *beats) answered(answer *command, places []*place) {
	list, err := integers(answer.reply, 3+len(places))
	if answer.err != nil || err != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, p := range places {
		if p.askedAt >= answer.sentAt {
			continue // it has asked itself since
		}
		before := list[3+i]
		if before < 0 {
			p.gone = true
		} else {
			p.standing = standing{
				left: time.Duration(list[0]) * time.Millisecond, before: int(before), last: list[1], plain: list[2] == 1,
			}
			p.askedAt, p.answeredAt = answer.sentAt, b.now()
		}
		if before <= 0 {
			signal(p.C)
		}
	}
}
