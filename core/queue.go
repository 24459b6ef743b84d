package core

import (
	"container/list"
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
}

// line is one name's waiters; the first talks to Redis.
type line struct {
	turns list.List // of *turn
	// What the first was last told, and when; it asks every other second at least.
	left  time.Duration // of the present holder's lease
	heard instant       // zero: never
}

// turn is a place in a line.
type turn struct {
	queue *queue
	key   string
	line  *line
	place *list.Element
	first chan struct{} // closed when the turn has come, or there is none to come
	err   error         // why there is none; set before first is closed
	out   bool          // of the line
	ack   ack           // that the caller wants
}

func newQueue() *queue {
	return &queue{lines: make(map[string]*line)}
}

// enter takes the last place in a name's line.
func (q *queue) enter(key string, a ack) *turn {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[key]
	if l == nil {
		l = new(line)
		q.lines[key] = l
	}
	t := &turn{queue: q, key: key, line: l, first: make(chan struct{}), ack: a}
	t.place = l.turns.PushBack(t)
	if l.turns.Len() == 1 {
		close(t.first)
	}
	return t
}

// empty reports whether nobody waits for a name.
func (q *queue) empty(key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lines[key] == nil
}

// wait returns when the turn has come: with errTimeUp if ctx or the client ended before, with another error if
// the first has found that there is nothing to wait for.
func (t *turn) wait(ctx context.Context, closing <-chan struct{}) error {
	select {
	case <-t.first:
		return t.err
	default:
	}
	select {
	case <-t.first:
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
	t.out = true
	wasFirst := t.line.turns.Front() == t.place
	t.line.turns.Remove(t.place)
	if wasFirst {
		t.proceed()
	}
}

// fail sends the line away, except those who want less of replicas, if that is what failed; only the first may call
// it.
func (t *turn) fail(err error) {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	short := errors.Is(err, ErrNotReplicated)
	var next *list.Element
	for place := t.place; place != nil; place = next {
		next = place.Next()
		other := place.Value.(*turn)
		if short && other.ack.replicas < t.ack.replicas {
			continue
		}
		other.out = true
		t.line.turns.Remove(place)
		if other != t {
			other.err = err
			close(other.first)
		}
	}
	t.proceed()
}

// proceed gives the turn to the next after the first has left; the queue's mutex is held.
func (t *turn) proceed() {
	if next := t.line.turns.Front(); next != nil {
		close(next.Value.(*turn).first)
	} else {
		delete(t.queue.lines, t.key)
	}
}

// tell notes what the first was told, for those behind it who give up.
func (t *turn) tell(left time.Duration, now instant) {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	t.line.left, t.line.heard = left, now
}

// told returns what the first in a name's line was told; false if there is none, or that is too long ago for the present
// first to be answered.
func (q *queue) told(key string, now instant) (left time.Duration, heard bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[key]
	if l == nil || l.heard == 0 || now.sub(l.heard) >= 2*pollHeard {
		return 0, false
	}
	return l.left, true
}
