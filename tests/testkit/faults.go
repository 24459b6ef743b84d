package testkit

import "time"

// Direction tells which bytes a fault acts on.
type Direction int

const (
	// ToServer are the requests.
	ToServer Direction = 1 << iota
	// ToClient are the replies.
	ToClient
	// Both are requests and replies.
	Both = ToServer | ToClient
)

// index is the place of a single direction in arrays.
func (d Direction) index() int { return int(d) - 1 }

// way holds the faults of one direction for all connections.
type way struct {
	delay time.Duration
	drop  bool
	hold  bool
	slice int // 0 for none
	cut   int
}

// faults is the state that the fault methods set, guarded by Relay.mu.
type faults struct {
	ways      [2]way
	refuse    bool
	losses    []*loss
	onRequest func(chunk []byte) // no fault: Heal leaves it
}

func (f *faults) clear() {
	*f = faults{onRequest: f.onRequest}
	for i := range f.ways {
		f.ways[i].cut = noCut
	}
}

// due tells when a chunk that arrives now may pass.
func (f *faults) due(d Direction) time.Time {
	if by := f.ways[d.index()].delay; by > 0 {
		return time.Now().Add(by)
	}
	return time.Time{}
}

// change runs fn under the mutex for each single direction in d, and for each
// connection's pipe of that direction, and wakes the writers.
func (r *Relay) change(d Direction, set func(w *way), each func(p *pipe)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, dir := range []Direction{ToServer, ToClient} {
		if d&dir == 0 {
			continue
		}
		if set != nil {
			set(&r.faults.ways[dir.index()])
		}
		for l := range r.links {
			p := l.pipes[dir.index()]
			if each != nil {
				each(p)
			}
			p.cond.Broadcast()
		}
	}
}

// Delay makes bytes pass later by the given time, in order. 0 ends it for those
// which arrive from now on.
func (r *Relay) Delay(d Direction, by time.Duration) {
	r.change(d, func(w *way) { w.delay = by }, nil)
}

// Drop swallows all bytes, and also the end of a connection: each side continues
// believing that the other is there. Connections that have lost something are
// closed by [Relay.Heal], since a stream with a gap cannot continue.
func (r *Relay) Drop(d Direction) {
	r.change(d, func(w *way) { w.drop = true }, nil)
}

// DropExisting is [Relay.Drop] for the connections open now; new ones work. It
// is what a firewall that has forgotten its connections does.
func (r *Relay) DropExisting(d Direction) {
	r.change(d, nil, func(p *pipe) { p.mute = true })
}

// CutAfter lets the next n bytes in a direction pass, counted for each
// connection apart, and then closes the connection (FIN to both sides). With 0
// it is closed instead of letting the first byte pass. What is queued in the
// other direction is still delivered.
func (r *Relay) CutAfter(d Direction, n int) {
	r.change(d, func(w *way) { w.cut = n }, func(p *pipe) { p.cut = n })
}

// Slice lets bytes pass in pieces of n at most, each sent by itself. 0 ends it.
func (r *Relay) Slice(d Direction, n int) {
	r.change(d, func(w *way) { w.slice = n }, nil)
}

// Hold keeps bytes back, and the ends of connections, until [Relay.Deliver] or
// [Relay.Heal]. They are then delivered even if the side that sent them has
// closed its connection meanwhile: this is the request which arrives after its
// client has given up.
func (r *Relay) Hold(d Direction) {
	r.change(d, func(w *way) { w.hold = true }, nil)
}

// Held returns the number of bytes the relay keeps at present, be it for
// [Relay.Hold] or for [Relay.Delay]. It tells a test that a request is underway.
func (r *Relay) Held(d Direction) int {
	n := 0
	r.change(d, nil, func(p *pipe) {
		for _, c := range p.queue {
			n += len(c.data)
		}
	})
	return n
}

// Deliver ends [Relay.Hold] in both directions and sends on what was held.
func (r *Relay) Deliver() {
	r.change(Both, func(w *way) { w.hold = false }, nil)
}

// Reset breaks all present connections with a RST to the client. Replies in the
// relay are lost, requests in the relay are still delivered.
func (r *Relay) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for l := range r.links {
		l.reset()
	}
}

// Refuse sets whether new connections are closed at once. The client's connect
// succeeds, and its first read or write fails. A Reset after Refuse(true) leaves
// no connection.
func (r *Relay) Refuse(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults.refuse = on
}

// Heal ends all faults. Bytes which were held or delayed are delivered now;
// connections which have lost bytes are closed after that.
func (r *Relay) Heal() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults.clear()
	for l := range r.links {
		l.heal()
	}
}
