package keepalive

import (
	"sync"
	"time"
)

// logInterval is how long no renewal has to fail before the log says that they succeed again. It is also how often
// the log says that they fail. Some leases may fail while others are renewed, for instance the leases on one master of a Cluster.
const logInterval = 10 * time.Second

// Log decides which failed renewals the log mentions. The zero value is a log that has mentioned none.
type Log struct {
	mu       sync.Mutex
	failed   Instant // the last one that failed
	warned   Instant // the last warning; zero if renewals are known to succeed
	failures int     // since then
}

// Note takes note of a renewal. It returns how many failures the log should mention, 0 for none. It returns again as true if the
// log should mention that renewals succeed again.
func (r *Log) Note(now Instant, err error) (failures int, again bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		again = r.warned != 0 && now.Sub(r.failed) >= logInterval
		if again {
			r.warned, r.failures = 0, 0
		}
		return 0, again
	}
	r.failed = now
	r.failures++
	if r.warned != 0 && now.Sub(r.warned) < logInterval {
		return 0, false
	}
	failures = r.failures
	r.warned, r.failures = now, 0
	return failures, false
}

// burstInterval is how long after the first loss the log says how many have followed. While a burst continues, it says so again
// every logInterval.
const burstInterval = time.Second

// MaxNamed is how many of those that have followed the log names.
const MaxNamed = 10

// Losses decides which lost leases the log mentions: of those that are lost for one cause in a burst, the first one, and how many
// followed. A burst is over when none has followed for an interval. Use NewLosses.
type Losses struct {
	further func(Further)

	mu     sync.Mutex
	bursts map[string]*burst // by the text of the cause; guarded by mu
	closed bool              // guarded by mu
}

// Further are the losses for one cause that have followed one that was mentioned.
type Further struct {
	Cause error
	Count int
	Locks []string // the first of them
}

// burst is a burst of losses for one cause. Its fields are guarded by the mutex of Losses.
type burst struct {
	Further // since the last line
	timer   *time.Timer
}

// NewLosses returns Losses that call further, on a goroutine of its own, with what has followed a loss that was mentioned.
func NewLosses(further func(Further)) *Losses {
	return &Losses{further: further, bursts: make(map[string]*burst)}
}

// Note takes note of the loss of a lock. It returns true if the log should mention it now.
func (l *Losses) Note(cause error, lock func() string) (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return true
	}
	if b := l.bursts[cause.Error()]; b != nil {
		if b.Count++; b.Count <= MaxNamed {
			b.Locks = append(b.Locks, lock())
		}
		return false
	}
	b := &burst{Further: Further{Cause: cause}}
	b.timer = time.AfterFunc(burstInterval, func() { l.tell(b) })
	l.bursts[cause.Error()] = b
	return true
}

// tell logs what has followed in a burst, or ends it.
func (l *Losses) tell(b *burst) {
	l.mu.Lock()
	found := b.takeLocked() // nothing if Close has logged it
	if !l.closed && found.Count > 0 {
		b.timer.Reset(logInterval)
	} else if !l.closed {
		delete(l.bursts, b.Cause.Error())
	}
	l.mu.Unlock()
	if found.Count > 0 {
		l.further(found)
	}
}

// takeLocked returns what has followed, and begins anew. The caller must hold the mutex.
func (b *burst) takeLocked() Further {
	found := b.Further
	b.Further = Further{Cause: b.Cause}
	return found
}

// Close logs all that has followed. Losses after it are logged one by one.
func (l *Losses) Close() {
	l.mu.Lock()
	var left []Further
	for _, b := range l.bursts {
		b.timer.Stop()
		if found := b.takeLocked(); found.Count > 0 {
			left = append(left, found)
		}
	}
	l.bursts, l.closed = nil, true
	l.mu.Unlock()
	for _, found := range left {
		l.further(found)
	}
}
