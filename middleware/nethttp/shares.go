package httplock

import (
	"net/http"
	"net/netip"
	"sync"
)

// shares bounds what all requests at a guard take together of something, and shares it among their owners: see [ownerOf].
// An owner gets no more than what is left for others. So one owner gets half of all at most, two get a third each, and
// there is always something left for another one.
type shares struct {
	mu    sync.Mutex
	most  int64
	taken int64
	by    map[string]int64
}

func newShares(most int64) *shares { return &shares{most: most, by: make(map[string]int64)} }

// take returns false if the owner would have more than is left.
func (s *shares) take(owner string, n int64) bool {
	if s == nil || n == 0 {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > s.most-s.taken-s.by[owner] {
		return false
	}
	s.taken += n
	s.by[owner] += n
	return true
}

func (s *shares) give(owner string, n int64) {
	if s == nil || n == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken -= n
	if s.by[owner] -= n; s.by[owner] == 0 {
		delete(s.by, owner)
	}
}

// move makes another owner of what was taken. It returns false, and changes nothing, if that one would have more than is
// left.
func (s *shares) move(from, to string, n int64) bool {
	if s == nil || n == 0 || from == to {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > s.most-(s.taken-n)-s.by[to] {
		return false
	}
	s.by[to] += n
	if s.by[from] -= n; s.by[from] == 0 {
		delete(s.by, from)
	}
	return true
}

// gate bounds how many requests wait: of one key, so that a client that repeats itself does not use up what the server
// can hold open, and of all keys together, shared among the owners of the keys.
type gate struct {
	mu      sync.Mutex
	waiting map[string]int
	perKey  int
	places  *shares
}

func newGate(perKey, most int) *gate {
	return &gate{waiting: make(map[string]int), perKey: perKey, places: newShares(int64(most))}
}

// enter reports whether a request of that key and owner may wait. If so, the caller must call leave.
func (g *gate) enter(key, owner string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting[key] >= g.perKey || !g.places.take(owner, 1) {
		return false
	}
	g.waiting[key]++
	return true
}

func (g *gate) leave(key, owner string) {
	g.places.give(owner, 1)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting[key]--; g.waiting[key] == 0 {
		delete(g.waiting, key)
	}
}

// The names of the parts of a key that authentication or the network has chosen, and not the client.
const (
	principalPart = "context"
	addressPart   = "ip"
)

// ownerOf returns who answers for what a request takes of the guard, of whose key the client may choose a part. It is the
// user or the address in the key, or else the scope in front of an Idempotency-Key. If the key has neither, it is the
// address of the connection: see [addressOf]. Without an address it is the whole key.
func ownerOf(key Key, address string) string {
	var known Key
	for _, p := range key.parts {
		if p.name == principalPart || p.name == addressPart {
			known.parts = append(known.parts, p)
		}
	}
	last := len(key.parts) - 1
	switch {
	case !known.IsZero():
		return known.Hash()
	case last > 0 && key.parts[last].name == idempotencyKey:
		return Key{parts: key.parts[:last]}.Hash()
	case address != "":
		return address
	}
	return key.Hash()
}

// addressOf returns the network of the client, or of the proxy in front, of a request whose key is not known. It is shorter
// than the hash of a key.
func addressOf(r *http.Request) string {
	addr, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil { // of a socket without addresses, for instance
		return "local"
	}
	return networkOf(addr.Addr()).String()
}
