package acquire

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
)

// Waits counts the callers that wait for each name, whatever the strategy. It bounds them, and decides when to warn of waits that last.
// Each name has a count of its own, so that a busy name does not affect callers of other names. It is safe for concurrent use.
//
// Why a bound: each waiter keeps a goroutine, and mostly a request of a user, in memory. While the lock is held, they would
// pile up without end.
//
// Warnings of a name come once, and then at doubling intervals. Why for a name and not for a call: 10,000 callers that wait for one
// name are one line in the log at a time. Why doubling: a wait of days must not fill the log.
type Waits struct {
	Most      int           // callers for one name; must not be changed after the first tryAdd
	WarnAfter time.Duration // for which a call has to wait before the first warning; 0 for no warnings; must not be changed after the first Due

	mu     sync.Mutex
	byLock map[string]nameWaits // by the lock's key; a name for which nobody waits takes no memory; guarded by mu
}

// nameWaits is what is known of the waits for one name.
type nameWaits struct {
	callers  int
	next     keepalive.Instant // no warning before
	interval time.Duration     // from the last warning to next; 0 before the first warning
}

// NewWaits returns waits without callers.
func NewWaits(most int, warnAfter time.Duration) *Waits {
	return &Waits{Most: most, WarnAfter: warnAfter, byLock: make(map[string]nameWaits)}
}

// tryAdd counts one more caller that waits for a name. It returns false, and counts nothing, if there are as many as may be.
// If it returns true, the caller must call remove once, when it waits no more.
func (w *Waits) tryAdd(key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.byLock[key]
	if n.callers >= w.Most {
		return false
	}
	n.callers++
	w.byLock[key] = n
	return true
}

// remove ends the wait of one caller that tryAdd has counted.
func (w *Waits) remove(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.byLock[key]
	if n.callers--; n.callers == 0 {
		delete(w.byLock, key)
		return
	}
	w.byLock[key] = n
}

// Count returns how many callers wait for a name.
func (w *Waits) Count(key string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.byLock[key].callers
}

// Due returns true if one of the callers that wait for a name has waited for long, and the last warning of the name is long enough
// ago. Then the caller must warn.
func (w *Waits) Due(key string, waited time.Duration, now keepalive.Instant) bool {
	if w.WarnAfter == 0 || waited < w.WarnAfter {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.byLock[key]
	switch {
	case n.interval == 0:
		late := min(waited-w.WarnAfter, w.WarnAfter/2) // which must not delay the second warning as well
		n.next, n.interval = now.Add(w.WarnAfter-late), w.WarnAfter
	case now < n.next:
		return false
	default:
		n.interval *= 2
		n.next = now.Add(n.interval)
	}
	w.byLock[key] = n
	return true
}

// Calls are the calls of this process that wait, whatever the strategy, for operators. A call enters when its wait begins, so a
// call that is granted at once costs nothing here. It is safe for concurrent use.
type Calls struct {
	mu      sync.Mutex
	waiting map[*Call]struct{} // guarded by mu, with the fields of all calls
}

// Call is one call that waits. Its position comes from the list or the queue in which it stands.
type Call struct {
	Name     string
	Owner    string
	Strategy script.Strategy
	Since    keepalive.Instant
	Local    *waiter // in the list of this process; nil if it waits in a queue in Redis
	Place    *place  // in a queue in Redis; nil if it waits in a list, or takes a new place at this moment
}

// NewCalls returns an empty set of calls.
func NewCalls() *Calls { return &Calls{waiting: make(map[*Call]struct{})} }

// enter adds a call. The caller must call leave once the wait has ended. Only update may change the call until then.
func (c *Calls) enter(call *Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting[call] = struct{}{}
}

// leave removes a call.
func (c *Calls) leave(call *Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, call)
}

// update changes the owner and the place of a call, for a hold that was replaced or queued anew.
func (c *Calls) update(call *Call, owner string, place *place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	call.Owner, call.Place = owner, place
}

// count returns how many calls wait.
func (c *Calls) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting)
}

// All returns copies of all calls at one instant, in no order.
func (c *Calls) All() []Call {
	all := make([]Call, 0, c.count())
	c.mu.Lock()
	defer c.mu.Unlock()
	for call := range c.waiting {
		all = append(all, *call)
	}
	return all
}
