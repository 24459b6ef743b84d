package core

import (
	"context"
	"errors"
	"sync"
	"time"
)

// queue lets one caller of this process at a time ask Redis for a name; the others wait here, in the order in
// which they came. Without it, every goroutine that wants a busy lock would poll for itself.
type queue struct {
	mu    sync.Mutex
	lines map[string]*line // by the lock's key; only those with somebody in them
	spare []*line          // to be used again: most lines have one turn, and a short life
}

// spareLines bounds how many are kept.
const spareLines = 64

// line is one name's waiters; the first talks to Redis.
type line struct {
	first, last *turn
	// What the first was last told, and when; it asks again after a pollSubscribed at least.
	left       time.Duration // of the present holder's lease
	heard      instant       // zero: never
	registered bool          // the client is registered as waiting in Redis, see wake_one.go

	entered, asked uint64 // how many have come, and how many had before the first asked; see shared_answer.go
}

// turn is a place in a line.
type turn struct {
	queue *queue
	key   string
	line  *line
	ack   ack // that the caller wants

	question any    // that the caller asks, nil if no answer to it holds for another one; see shared_answer.go
	number   uint64 // in the order of arrival

	before, behind *turn
	come           chan struct{} // closed when the turn has come, or there is none to come; nil if it had come at once
	err            error         // why there is none; set before come is closed
	out            bool          // of the line
	unregister     bool          // it has left an empty line whose client is registered
}

func newQueue() *queue {
	return &queue{lines: make(map[string]*line)}
}

// enter takes the last place in a name's line.
func (q *queue) enter(t *turn, key string, a ack) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t.queue, t.key, t.ack = q, key, a
	l := q.lines[key]
	if l == nil {
		l = q.open(key)
	}
	l.entered++
	t.line, t.before, t.number = l, l.last, l.entered
	if l.last = t; t.before == nil {
		l.first = t
	} else {
		t.before.behind = t
		t.come = make(chan struct{})
	}
}

func (q *queue) open(key string) *line {
	var l *line
	if n := len(q.spare); n > 0 {
		l, q.spare = q.spare[n-1], q.spare[:n-1]
		*l = line{}
	} else {
		l = new(line)
	}
	q.lines[key] = l
	return l
}

// empty reports whether nobody waits for a name.
func (q *queue) empty(key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lines[key] == nil
}

// waits reports whether the turn has yet to come.
func (t *turn) waits() bool { return t.come != nil && !closed(t.come) }

// wait returns when the turn has come: with errTimeUp if ctx or the client ended before, with another error if
// the first has found that there is nothing to wait for.
func (t *turn) wait(ctx context.Context, closing <-chan struct{}) error {
	if !t.waits() {
		return t.err
	}
	select {
	case <-t.come:
		return t.err
	case <-ctx.Done():
		return errTimeUp
	case <-closing:
		return errTimeUp
	}
}

// leave gives the place up, and the turn to the next.
func (t *turn) leave() {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	if t.out {
		return
	}
	wasFirst := t.line.first == t
	t.stepOut()
	if wasFirst {
		t.proceed()
	}
}

// stepOut takes the turn out of its line; the queue's mutex is held.
func (t *turn) stepOut() {
	t.out = true
	if t.before == nil {
		t.line.first = t.behind
	} else {
		t.before.behind = t.behind
	}
	if t.behind == nil {
		t.line.last = t.before
	} else {
		t.behind.before = t.before
	}
	t.before, t.behind = nil, nil // so that who has gone keeps nobody's memory
}

// fail sends the line away, except those who want less of replicas, if that is what failed; only the first may call
// it.
func (t *turn) fail(err error) {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	short := errors.Is(err, ErrNotReplicated)
	var next *turn
	for other := t; other != nil; other = next {
		next = other.behind
		if short && other.ack.replicas < t.ack.replicas {
			continue
		}
		if other == t {
			t.stepOut()
		} else {
			other.sendAway(err)
		}
	}
	t.proceed()
}

// sendAway takes a waiter out of its line, with what its wait returns; the queue's mutex is held.
func (t *turn) sendAway(err error) {
	t.stepOut()
	t.err = err
	close(t.come)
}

// proceed gives the turn to the next after the first has left; the queue's mutex is held.
func (t *turn) proceed() {
	if next := t.line.first; next != nil {
		close(next.come)
		return
	}
	t.unregister = t.line.registered
	delete(t.queue.lines, t.key)
	if len(t.queue.spare) < spareLines {
		t.queue.spare = append(t.queue.spare, t.line)
	}
}

// tell notes what the first was told, for those behind it who give up.
func (t *turn) tell(left time.Duration, now instant) {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	t.line.left, t.line.heard = left, now
}

// setRegistered records whether the client is registered as waiting for this lock.
func (t *turn) setRegistered(registered bool) {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	t.line.registered = registered
}

// pollInterval is the longest time between two polls of the first in a line, if it is subscribed.
func (q *queue) pollInterval() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.pollIntervalLocked()
}

func (q *queue) pollIntervalLocked() time.Duration {
	return max(pollSubscribed, pollSubscribed*time.Duration(len(q.lines))/manyNames)
}

// told returns what the first in a name's line was told; false if there is none, or that is too long ago for the present
// first to be answered.
func (q *queue) told(key string, now instant) (left time.Duration, heard bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[key]
	if l == nil || l.heard == 0 || now.sub(l.heard) >= 2*q.pollIntervalLocked() {
		return 0, false
	}
	return l.left, true
}
