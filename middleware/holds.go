package middleware

import (
	"slices"
	"sync"
	"time"
)

const (
	// rememberedHolds is of how many runs a guard knows how long they took.
	rememberedHolds = 64
	// enoughHolds is how many of them tell which are exceptions.
	enoughHolds = 20
)

// holds knows how long the last runs behind a guard took. The rest of a lease tells only when a crashed holder will be
// out of the way; one that works will be done far sooner.
type holds struct {
	mu   sync.Mutex
	last [rememberedHolds]time.Duration
	n    int
}

func (h *holds) add(took time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last[h.n%rememberedHolds] = took
	h.n++
}

// most returns the time within which 19 of 20 runs end; of less than 20 runs the longest; false if none is known.
func (h *holds) most() (time.Duration, bool) {
	h.mu.Lock()
	known := slices.Clone(h.last[:min(h.n, rememberedHolds)])
	h.mu.Unlock()
	switch {
	case len(known) == 0:
		return 0, false
	case len(known) < enoughHolds:
		return slices.Max(known), true
	}
	slices.Sort(known)
	return known[(len(known)*95-1)/100], true
}
