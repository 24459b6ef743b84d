package inventory

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

const (
	// firstInterval is how soon after its first write a client that has leases or waiters writes its text again. Each further
	// interval is twice as long as the one before. Why: each text is kept for two intervals beyond the longest lease, until
	// the next write. So a process that is killed early does not leave its text for hours.
	firstInterval = time.Minute
	// longestInterval bounds these intervals.
	longestInterval = time.Hour
	// retryInterval is when a failed write is repeated.
	retryInterval = time.Minute
)

// Announcer writes the text of one client, in the background. Each write waits for its answer for
// transport.FirstAnswerTimeout at most. It is safe for concurrent use.
type Announcer struct {
	key     string
	text    string
	now     keepalive.Clock
	failed  func(error)
	servers []*transport.Executor

	// Read without the mutex. Touch has nothing to do before due, for a TTL up to covered.
	due     atomic.Int64 // a keepalive.Instant
	covered atomic.Int64 // the longest TTL of a lease so far; a time.Duration

	mu       sync.Mutex
	interval time.Duration  // from the next write to the one after it; guarded by mu
	wrote    bool           // true after the first write was sent; guarded by mu
	left     bool           // true after Leave; guarded by mu
	sending  sync.WaitGroup // one for each server of each script; Touch adds to it under mu
}

// NewAnnouncer returns the announcer of the client with that UUID. An empty text is never written. It calls failed for each
// write that a server has not confirmed. Servers must be added before the first Touch.
func NewAnnouncer(client, text string, now keepalive.Clock, failed func(error)) *Announcer {
	a := &Announcer{key: script.ClientKey(client), text: text, now: now, failed: failed, interval: firstInterval}
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
func (a *Announcer) Touch(now keepalive.Instant, ttl time.Duration) {
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
	a.due.Store(int64(a.now().Add(a.interval)))
	a.wrote = true
	a.send(a.note, announceScript, a.text, script.Milliseconds(longest+2*a.interval))
	a.interval = min(2*a.interval, longestInterval)
}

// Leave says that the client has closed. What is written expires with the longest lease that may be left. It waits for the
// answers, for twice transport.FirstAnswerTimeout at most, because the caller may close the connections next.
//
// It also waits for the writes before. Why: they may take another connection, and so be executed after what Leave sends.
func (a *Announcer) Leave() {
	a.mu.Lock()
	a.left = true
	wrote := a.wrote
	a.mu.Unlock()
	a.sending.Wait()
	if wrote {
		a.send(func(error) {}, leaveScript, script.Milliseconds(time.Duration(a.covered.Load())))
		a.sending.Wait()
	}
}

// send sends a script to all servers, and calls answered with each outcome. It does not wait.
func (a *Announcer) send(answered func(error), script *transport.Script, args ...any) {
	for _, exec := range a.servers {
		a.sending.Go(func() { answered(a.sendTo(exec, script, args)) })
	}
}

// sendTo sends a script to one server, in its queue of renewals, and waits for the answer.
func (a *Announcer) sendTo(exec *transport.Executor, script *transport.Script, args []any) error {
	answered := make(chan error, 1)
	c := transport.NewCommand(script, []string{a.key}, args...)
	c.Done = func(c *transport.Command) { answered <- c.Err }
	exec.SubmitRenewals([]*transport.Command{c})
	timeout := time.NewTimer(transport.FirstAnswerTimeout)
	defer timeout.Stop()
	select {
	case err := <-answered:
		return err
	case <-timeout.C:
		return transport.ErrNotAnswered
	}
}

// note has a failed write repeated.
func (a *Announcer) note(err error) {
	if err != nil {
		a.due.Store(int64(a.now().Add(retryInterval)))
		a.failed(err)
	}
}
