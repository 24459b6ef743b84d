package httpguard

import "sync"

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
