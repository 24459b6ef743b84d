package core

import (
	"slices"
	"sync"
	"time"
)

const (
	// callFlights is how many round trips may be under way at once before commands start to share them. Few,
	// because a command that waits a moment for company costs less than a system call of its own.
	callFlights = 4
	// renewalFlights is the same for renewals, which nobody waits for.
	renewalFlights = 2
	// maxBatch bounds the commands of one round trip.
	maxBatch = 256
	// stall is how long a flight may take before it no longer counts: one dead connection, on which go-redis
	// waits for its whole read timeout, must not hold up the commands behind it.
	stall = 250 * time.Millisecond
)

// lane lets a bounded number of crews fly at a time. What arrives meanwhile waits and leaves together with the
// next flight, so batches grow with the load and a lone call never waits.
type lane struct {
	limit int
	fly   func([]*call)

	mu     sync.Mutex
	queue  []*call
	crews  map[*crew]struct{} // those that count: flying, and not stalled
	relief *time.Timer        // set while calls wait and all crews are out
	solo   *crew              // a caller who flies by himself, see direct.go; nil if none does
	idle   *crew              // for the next one
}

// crew is a goroutine that flies until the queue is empty.
type crew struct {
	// Of the present flight; guarded by the lane's mutex.
	departed time.Time
	waits    time.Duration // for replicas, which is no stall
}

func newLane(limit int, fly func([]*call)) *lane {
	return &lane{limit: limit, fly: fly, crews: make(map[*crew]struct{})}
}

func (l *lane) submit(calls ...*call) {
	l.mu.Lock()
	l.queue = append(l.queue, calls...)
	l.dispatch()
	l.mu.Unlock()
}

// dispatch sees to it that somebody will fly what is queued; l.mu is held.
func (l *lane) dispatch() {
	switch {
	case len(l.queue) == 0:
	case len(l.crews) < l.limit:
		c := &crew{departed: time.Now()}
		l.crews[c] = struct{}{}
		go l.work(c)
	case l.relief == nil:
		l.relief = time.AfterFunc(stall, l.relieve)
	}
}

// takeOff lets a caller fly by himself, if nobody else flies or waits; it owes a land then. What is submitted meanwhile
// leaves as if he were a crew.
func (l *lane) takeOff() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.solo != nil || len(l.crews) > 0 || len(l.queue) > 0 {
		return false
	}
	if l.idle == nil {
		l.idle = new(crew)
	}
	l.solo, l.idle = l.idle, nil
	l.solo.departed, l.solo.waits = time.Now(), 0
	l.crews[l.solo] = struct{}{}
	return true
}

// land ends that.
func (l *lane) land() {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.crews, l.solo)
	l.solo, l.idle = nil, l.solo
	l.dispatch()
}

// relieve stops counting the crews that do not come back, so that others may start.
func (l *lane) relieve() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.relief = nil
	for c := range l.crews {
		if time.Since(c.departed) >= stall+c.waits {
			delete(l.crews, c)
		}
	}
	l.dispatch()
}

func (l *lane) work(c *crew) {
	for {
		batch := l.board(c)
		if len(batch) == 0 {
			return
		}
		l.fly(batch)
	}
}

// board takes the next batch; it is empty when the crew has nothing left to do or was replaced meanwhile.
func (l *lane) board(c *crew) []*call {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, counts := l.crews[c]; !counts {
		return nil
	}
	n := 0
	var batch []*call
	for ; n < len(l.queue) && len(batch) < maxBatch; n++ {
		if l.queue[n].state.CompareAndSwap(callQueued, callSent) {
			batch = append(batch, l.queue[n])
		}
	}
	l.queue = slices.Delete(l.queue, 0, n)
	if len(batch) == 0 {
		delete(l.crews, c)
		return nil
	}
	c.departed, c.waits = time.Now(), strictest(batch).timeout
	l.dispatch() // of a queue longer than a batch, others may take the rest
	return batch
}
