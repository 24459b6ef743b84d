package testkit

import (
	"bytes"
	"strings"
)

// LossMode tells what becomes of a connection whose reply is lost.
type LossMode int

const (
	// Silent leaves the connection open and lets no more replies pass on it, so
	// that the client waits until its timeout.
	Silent LossMode = iota + 1
	// Closed closes the connection when the reply arrives: the client sees EOF.
	Closed
)

// loss is one call of LoseReplies.
type loss struct {
	match []byte // in lower case
	left  int
	how   LossMode
}

// matchLoss tells how the reply to a request should be lost, 0 for not at all.
func (f *faults) matchLoss(request []byte) LossMode {
	if len(f.losses) == 0 {
		return 0
	}
	request = bytes.ToLower(request)
	for _, l := range f.losses {
		if l.left > 0 && bytes.Contains(request, l.match) {
			l.left--
			return l.how
		}
	}
	return 0
}

// LoseReplies lets the next n requests which contain match reach the server and
// be executed, and swallows their replies. Upper and lower case are the same, as
// in the names of commands. A request is here what a client sends in one piece:
// one command, or a whole pipeline, of up to 64 KiB. Several calls add up.
//
// Match on the name of a key or a script's text rather than on a command like
// "set", which the handshake of a new connection contains too (CLIENT SETINFO).
func (r *Relay) LoseReplies(match string, n int, how LossMode) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := &loss{match: []byte(strings.ToLower(match)), left: n, how: how}
	r.faults.losses = append(r.faults.losses, l)
}

// LostReplies returns how many replies [Relay.LoseReplies] has swallowed. Each
// stands for a request that was executed.
func (r *Relay) LostReplies() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

// OnRequest calls fn with each piece of bytes that a client sends, before it goes
// on to the server, so that a test can act exactly at a certain command: a fault
// that fn sets already acts on this piece, and while fn blocks, its connection
// does. The calls for several connections may overlap. Nil ends it; Heal does not.
func (r *Relay) OnRequest(fn func(chunk []byte)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults.onRequest = fn
}

// observe calls the function given to OnRequest without the mutex, so that it
// may call the relay.
func (p *pipe) observe(request []byte) {
	r := p.link.relay
	r.mu.Lock()
	fn := r.faults.onRequest
	ended := p.ended
	r.mu.Unlock()
	if fn != nil && !ended {
		fn(request)
	}
}
