package middleware

import "sync"

// gate bounds how many requests wait: of one key, so that a client that repeats itself does not use up what the server
// can hold open, and of all keys together.
type gate struct {
	mu      sync.Mutex
	waiting map[string]int
	total   int
	perKey  int
	most    int
}

func newGate(perKey, most int) *gate {
	return &gate{waiting: make(map[string]int), perKey: perKey, most: most}
}

// enter reports whether a request of that key may wait; it owes a leave then.
func (g *gate) enter(key string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.total >= g.most || g.waiting[key] >= g.perKey {
		return false
	}
	g.total++
	g.waiting[key]++
	return true
}

func (g *gate) leave(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.total--
	if g.waiting[key]--; g.waiting[key] == 0 {
		delete(g.waiting, key)
	}
}
