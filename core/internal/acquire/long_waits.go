package acquire

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
)

// LongWaits decides when to warn of waits that last: once, and then at doubling intervals, for each name. Why for a name and
// not for a call: 10,000 callers that wait for one name are one line in the log at a time. Why doubling: a wait of days must
// not fill the log. It is safe for concurrent use.
type LongWaits struct {
	// First is for how long a call has to wait before the first warning; 0 for no warnings. It must not be changed after the
	// first Due.
	First time.Duration

	names atomic.Int64 // that were warned of, read without the mutex

	mu     sync.Mutex
	byName map[string]*longWait // guarded by mu, with the fields of its elements
}

// longWait is what is known of a name that was warned of.
type longWait struct {
	next     keepalive.Instant // no warning before
	interval time.Duration     // from the last warning to next
}

// Due returns true if a call has waited for long, and the last warning of its name is long enough ago. Then the caller must
// warn.
func (w *LongWaits) Due(name string, waited time.Duration, now keepalive.Instant) bool {
	if w.First == 0 || waited < w.First {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.byName[name]
	switch {
	case n == nil:
		if w.byName == nil {
			w.byName = make(map[string]*longWait)
		}
		late := min(waited-w.First, w.First/2) // which must not delay the second warning as well
		w.byName[name] = &longWait{next: now.Add(w.First - late), interval: w.First}
		w.names.Add(1)
	case now < n.next:
		return false
	default:
		n.interval *= 2
		n.next = now.Add(n.interval)
	}
	return true
}

// Forget says that no call waits for a name any more. It costs little if no name was warned of.
func (w *LongWaits) Forget(name string) {
	if w.names.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.byName[name]; ok {
		delete(w.byName, name)
		w.names.Add(-1)
	}
}
