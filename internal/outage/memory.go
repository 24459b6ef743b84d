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
	// mostRemembered bounds the keys of which a Memory knows that another process has them, and those with an effect.
	mostRemembered = 10_000
	// sweepInterval lies between two searches of a full Memory for what has expired.
	sweepInterval = time.Second
	// effectMemory is how long a success counts that Redis does not know: as long as a client goes on to send its record.
	effectMemory = 10 * time.Minute
	// runLease is the time to come back after a run of this process whose end is not known.
	runLease = 30 * time.Second
)

// Memory is what a guard that fails open knows of its keys without Redis: the runs in this process, what Redis has said of
// others, and what has taken effect here. It is safe for concurrent use. The zero value knows nothing.
//
// Why: [Patience] remembers an answer within one call only. A task that is redelivered, or a client that repeats its request,
// comes with a further call. In an outage that call would run beside the run which was in its way a moment ago.
type Memory struct {
	mu      sync.Mutex
	runs    map[string]int // in progress in this process
	refused deadlines      // until then another holder has a lease
	effects deadlines      // until then the record of a success may be missing
}

// Granted notes a run for which Redis has granted the key. The guard must call end when the run has ended.
func (m *Memory) Granted(key string) (end func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.refused.until, key)
	delete(m.effects.until, key)
	return m.count(key)
}

// Enter notes a run that begins in an outage, unless the key is in use as far as is known: then it returns an error which is no
// outage for [Is]. lock is nil for a record; then the error may be a [core.CompletedError] without a value. The guard must call
// end when the run has ended.
//
// Why one call: of two requests that wait for the end of an outage together, one must see the other.
func (m *Memory) Enter(key string, lock core.Locker, unavailable error) (end func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.inUse(key, lock, unavailable); err != nil {
		return nil, err
	}
	return m.count(key), nil
}

// Known returns the error of [Memory.Enter], and notes no run.
func (m *Memory) Known(key string, lock core.Locker, unavailable error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.inUse(key, lock, unavailable)
}

// Refused notes until when another holder has the key, if err is such an answer. A run of this process counts by itself.
func (m *Memory) Refused(key string, err error) {
	var held *core.NotAcquiredError
	var running *core.InProgressError
	left := time.Duration(0)
	switch {
	case errors.As(err, &running):
		left = running.RetryAfter
	case errors.As(err, &held):
		left = held.RetryAfter
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if left > 0 && m.runs[key] == 0 {
		m.refused.set(key, left)
	}
}

// Effect notes that a run of this process has taken effect, and that Redis has not confirmed its record.
func (m *Memory) Effect(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.effects.set(key, effectMemory)
}

func (m *Memory) count(key string) (end func()) {
	if m.runs == nil {
		m.runs = make(map[string]int)
	}
	m.runs[key]++
	return sync.OnceFunc(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.runs[key]--; m.runs[key] == 0 {
			delete(m.runs, key)
		}
	})
}

func (m *Memory) inUse(key string, lock core.Locker, unavailable error) error {
	left := m.refused.left(key)
	if m.runs[key] >= besides(lock) {
		left = max(left, runLease)
	}
	switch {
	case lock == nil && m.effects.left(key) > 0:
		return known{&core.CompletedError{Record: core.Record{Key: key, State: core.StateCompleted, Omitted: true}}, unavailable}
	case left <= 0:
		return nil
	case lock == nil:
		return known{&core.InProgressError{Key: key, RetryAfter: left}, unavailable}
	}
	return known{&core.NotAcquiredError{Name: key, RetryAfter: left}, unavailable}
}

// besides returns how many runs there can be beside each other. A Locker of another package counts as exclusive.
func besides(lock core.Locker) int {
	if core.ModeOf(lock) == core.ModeRead {
		return math.MaxInt
	}
	return max(core.LimitOf(lock), 1)
}

// deadlines are keys with a time, of which it keeps so many. The zero value is empty.
type deadlines struct {
	until map[string]time.Time
	swept time.Time
}

// set keeps the later one of two times of a key.
func (d *deadlines) set(key string, left time.Duration) {
	if d.until == nil {
		d.until = make(map[string]time.Time)
	}
	now := time.Now()
	if len(d.until) >= mostRemembered && now.Sub(d.swept) >= sweepInterval {
		maps.DeleteFunc(d.until, func(_ string, until time.Time) bool { return !until.After(now) })
		d.swept = now
	}
	before, has := d.until[key]
	if until := now.Add(left); until.After(before) && (has || len(d.until) < mostRemembered) {
		d.until[key] = until
	}
}

func (d *deadlines) left(key string) time.Duration { return time.Until(d.until[key]) }

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
