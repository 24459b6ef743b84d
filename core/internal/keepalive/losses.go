package keepalive

import (
	"sync"
	"time"
)

// burstInterval is how long after the first loss the log says how many have followed. While a burst goes on, it says so again
// every logInterval.
const burstInterval = time.Second

// maxNamed is how many of those that have followed the log names.
const maxNamed = 10

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
		if b.Count++; b.Count <= maxNamed {
			b.Locks = append(b.Locks, lock())
		}
		return false
	}
	b := &burst{Further: Further{Cause: cause}}
	b.timer = time.AfterFunc(burstInterval, func() { l.tell(b) })
	l.bursts[cause.Error()] = b
	return true
}

// tell tells of what has followed in a burst, or ends it.
func (l *Losses) tell(b *burst) {
	l.mu.Lock()
	found := b.takeLocked() // nothing if Close has told
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

// Close tells of all that has followed. Losses after it are mentioned one by one.
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
