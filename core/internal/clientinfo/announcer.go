package clientinfo

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/lockscript"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

const (
	// Interval is how often a client that has leases or waiters writes its text again.
	Interval = time.Hour
	// margin is for how much longer than its longest lease the text of a client is kept: a renewal comes in time to write
	// it again.
	margin = 2 * Interval
	// retryInterval is when a failed write is repeated.
	retryInterval = time.Minute
)

// Announcer writes the text of one client, in the background. It is safe for concurrent use.
type Announcer struct {
	key     string
	text    string
	now     clock.Clock
	failed  func(error)
	servers []*transport.Executor

	// Read without the mutex. Touch has nothing to do before due, for a TTL up to covered.
	due     atomic.Int64 // a clock.Instant
	covered atomic.Int64 // the longest TTL of a lease so far; a time.Duration

	mu      sync.Mutex
	written bool // true if a server has confirmed the text; guarded by mu
	left    bool // true after Leave; guarded by mu
}

// NewAnnouncer returns the announcer of the client with that UUID. An empty text is never written. It calls failed for each
// write that a server has not confirmed. Servers must be added before the first Touch.
func NewAnnouncer(client, text string, now clock.Clock, failed func(error)) *Announcer {
	a := &Announcer{key: lockscript.ClientKey(client), text: text, now: now, failed: failed}
	if text == "" {
		a.due.Store(math.MaxInt64)
		a.covered.Store(math.MaxInt64)
	}
	return a
}

// AddServer adds a server, to which the text is written. A Redlock has several.
func (a *Announcer) AddServer(exec *transport.Executor) { a.servers = append(a.servers, exec) }

// Touch says that the client has a lease of that TTL, or waits for one. It writes the text if that is due, and does not
// wait for the answer. now may be some milliseconds old.
func (a *Announcer) Touch(now clock.Instant, ttl time.Duration) {
	if int64(now) < a.due.Load() && int64(ttl) <= a.covered.Load() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.left || a.text == "" || int64(now) < a.due.Load() && int64(ttl) <= a.covered.Load() {
		return
	}
	longest := max(ttl, time.Duration(a.covered.Load()))
	a.covered.Store(int64(longest))
	a.due.Store(int64(a.now().Add(Interval)))
	a.sendLocked(announceScript, a.text, lockscript.Milliseconds(longest+margin))
}

// Leave says that the client has closed. What is written expires with the longest lease that may be left. It does not wait
// for the answer.
func (a *Announcer) Leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.left = true; a.written {
		a.sendLocked(leaveScript, lockscript.Milliseconds(time.Duration(a.covered.Load())))
	}
}

// sendLocked sends a script to all servers, in the queues of renewals.
func (a *Announcer) sendLocked(script *transport.Script, args ...any) {
	for _, exec := range a.servers {
		c := transport.NewCommand(script, []string{a.key}, args...)
		c.Done = a.answered
		exec.SubmitRenewals([]*transport.Command{c})
	}
}

// answered notes the outcome of a write.
func (a *Announcer) answered(c *transport.Command) {
	a.mu.Lock()
	left := a.left
	if c.Err == nil {
		a.written = true
	} else {
		a.due.Store(int64(a.now().Add(retryInterval)))
	}
	a.mu.Unlock()
	if c.Err != nil && !left {
		a.failed(c.Err)
	}
}
