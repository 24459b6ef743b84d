package outage

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

const (
	// mostRemembered bounds the keys of which a Memory knows that another process has them.
	mostRemembered = 10_000
	// PendingEnd is how long a client goes on to send the end of a run that Redis has not confirmed.
	PendingEnd = 10 * time.Minute
	// runLease is the time to come back after a run of this process whose end is not known.
	runLease = 30 * time.Second
)

// Memory is what a guard that fails open knows of its keys without Redis: the runs in this process, and what Redis has said
// of others. It is safe for concurrent use. The zero value knows nothing.
//
// Why: [Patience] remembers an answer within one call only. A task that is redelivered, or a client that repeats its request,
// comes with a further call. In an outage that call would run beside the run which was in its way a moment ago.
type Memory struct {
	mu   sync.Mutex
	runs map[string]int       // in progress in this process
	held map[string]time.Time // until then another holder has a lease, or the record of a completed run may be on its way
}

// Run notes a run in this process. The guard must call end when the run has ended.
func (m *Memory) Run(key string) (end func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.runs == nil {
		m.runs = make(map[string]int)
	}
	m.runs[key]++
	delete(m.held, key)
	return sync.OnceFunc(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.runs[key]--; m.runs[key] == 0 {
			delete(m.runs, key)
		}
	})
}

// Refused notes that another holder has the key, if err is such an answer: until its lease ends.
func (m *Memory) Refused(key string, err error) {
	var held *core.NotAcquiredError
	var running *core.InProgressError
	switch {
	case errors.As(err, &running) && running.RetryAfter > 0:
		m.hold(key, running.RetryAfter)
	case errors.As(err, &held) && held.RetryAfter > 0:
		m.hold(key, held.RetryAfter)
	}
}

// Unconfirmed notes that a run of this process has taken effect, and that Redis has not confirmed its record.
func (m *Memory) Unconfirmed(key string) { m.hold(key, PendingEnd) }

func (m *Memory) hold(key string, d time.Duration) {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held == nil {
		m.held = make(map[string]time.Time)
	}
	if len(m.held) >= mostRemembered {
		maps.DeleteFunc(m.held, func(_ string, until time.Time) bool { return !until.After(now) })
	}
	if len(m.held) < mostRemembered {
		m.held[key] = now.Add(d)
	}
}

// Record returns the error with which a key is refused in an outage, because one of its runs is in progress or has taken
// effect, as far as is known. It returns nil if none is known of.
func (m *Memory) Record(key string, unavailable error) error {
	if left, busy := m.left(key, 1); busy {
		return known{&core.InProgressError{Key: key, RetryAfter: left}, unavailable}
	}
	return nil
}

// Lock is [Memory.Record] for a lock.
func (m *Memory) Lock(key string, lock core.Locker, unavailable error) error {
	limit := max(core.LimitOf(lock), 1)
	if core.ModeOf(lock) == core.ModeRead {
		limit = math.MaxInt // readers run beside each other
	}
	if left, busy := m.left(key, limit); busy {
		return known{&core.NotAcquiredError{Name: key, RetryAfter: left}, unavailable}
	}
	return nil
}

// left returns for how long a key is in use, and false if it is not.
func (m *Memory) left(key string, limit int) (time.Duration, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.runs[key] >= limit {
		return runLease, true
	}
	left := time.Until(m.held[key])
	return left, left > 0
}

// known is an answer of Redis that is older than an outage. It is no outage for [Is].
type known struct {
	error
	unavailable error
}

// Error returns what is known, and why Redis was not asked.
func (k known) Error() string {
	return fmt.Sprintf("%v, as was last known: %v", k.error, k.unavailable)
}

// Unwrap returns what is known.
func (k known) Unwrap() error { return k.error }
