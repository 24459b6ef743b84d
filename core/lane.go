package core

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
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

// call is one script on its way through a lane.
type call struct {
	ctx    context.Context // travels with a lone call, for the hooks of the user's client
	script *script
	keys   []string
	args   []any
	way    *node
	ack    ack    // of replicas; all calls of a lane want one, or none does
	asking bool   // it goes where its slot is about to move
	board  func() // called when it leaves, if not nil
	done   func(*call)

	state  atomic.Int32 // of the three below: a call is either sent or withdrawn, never both
	sentAt instant      // read before it was sent
	reply  any
	err    error
}

const (
	callQueued = iota
	callSent
	callWithdrawn
)

// withdraw takes back a call that has not been sent; it reports false if it is too late.
func (c *call) withdraw() bool { return c.state.CompareAndSwap(callQueued, callWithdrawn) }

func (c *call) take(a attempt) {
	c.reply, c.err = a.Result()
	c.err = unwrapScript(c.err)
}

// lane lets a bounded number of crews fly at a time. What arrives meanwhile waits and leaves together with the
// next flight, so batches grow with the load and a lone call never waits.
type lane struct {
	limit int
	fly   func([]*call)

	mu     sync.Mutex
	queue  []*call
	crews  map[*crew]struct{} // those that count: flying, and not stalled
	relief *time.Timer        // set while calls wait and all crews are out
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
