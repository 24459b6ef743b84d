package acquire

import (
	"sync"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
)

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
