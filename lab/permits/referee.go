package permits

import (
	"sync"
	"time"
)

// referee counts the permits whose holders believe in them.
type referee struct {
	mu   sync.Mutex
	held map[Permit]bool
	most int // in use at the moment of a grant
}

func newReferee() *referee { return &referee{held: make(map[Permit]bool)} }

// granted counts a new permit and those granted before. No count is too high, because a permit that was granted before, and is
// valid after this grant, was in use at the moment of this grant.
func (r *referee) granted(p Permit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held[p] = true
	r.most = max(r.most, r.valid())
}

// gone is called before a permit is released, and when its holder has crashed.
func (r *referee) gone(p Permit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.held, p)
}

// inUse returns how many permits are in use now.
func (r *referee) inUse() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.valid()
}

// valid returns how many holders believe in their permits. The caller holds mu.
func (r *referee) valid() (n int) {
	for p := range r.held {
		if p.Valid() {
			n++
		}
	}
	return n
}

// overFor waits until at most n permits are in use, or most has passed, and returns how long that took.
func (r *referee) overFor(n int, most time.Duration) time.Duration {
	began := time.Now()
	for r.inUse() > n && time.Since(began) < most {
		time.Sleep(time.Millisecond)
	}
	return time.Since(began)
}
