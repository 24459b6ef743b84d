// Package throttle says which of many equal events are worth a line in a log.
package throttle

import (
	"sync"
	"time"
)

const (
	// logInterval is how long failures of one kind are counted before another line reports them.
	logInterval = time.Minute
	// mostKinds bounds the memory of a Throttle; further kinds share one count.
	mostKinds = 64
)

// Throttle says which events are worth a line in the log: the first of its kind at once, then one per minute with the
// number of all since. It has no goroutine: the count of a kind waits for the next event of that kind. It is safe for
// concurrent use. The zero value is ready.
type Throttle struct {
	mu    sync.Mutex
	kinds map[string]*tally
}

// tally is what a Throttle knows of one kind.
type tally struct {
	told  time.Time // when the last line was written
	count int       // events since
}

// Event counts an event. If that is to be logged, seen is how many there were since the last line, this one included,
// and within is the time since. The first event of a kind is seen once, within no time. If seen is 0, the event is not
// to be logged.
func (t *Throttle) Event(kind string) (seen int, within time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	k := t.kinds[kind]
	if k == nil {
		if t.kinds == nil {
			t.kinds = make(map[string]*tally)
		}
		if len(t.kinds) >= mostKinds {
			kind = ""
		}
		if k = t.kinds[kind]; k == nil {
			t.kinds[kind] = &tally{told: now}
			return 1, 0
		}
	}
	k.count++
	if within = now.Sub(k.told); within < logInterval {
		return 0, 0
	}
	seen = k.count
	k.told, k.count = now, 0
	return seen, within
}
