package core

import (
	"container/list"
	"context"
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
	turns list.List     // of *turn
	left  time.Duration // of the present holder's lease, as the first was last told
}

// turn is a place in a line.
type turn struct {
	queue *queue
	key   string
	line  *line
	place *list.Element
	first chan struct{} // closed when the turn has come
}

func newQueue() *queue {
	return &queue{lines: make(map[string]*line)}
}

// enter takes the last place in a name's line.
func (q *queue) enter(key string) *turn {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[key]
	if l == nil {
		l = new(line)
		q.lines[key] = l
	}
	t := &turn{queue: q, key: key, line: l, first: make(chan struct{})}
	t.place = l.turns.PushBack(t)
	if l.turns.Len() == 1 {
		close(t.first)
	}
	return t
}

// wait returns when the turn has come; with false if ctx or the client ended before.
func (t *turn) wait(ctx context.Context, closing <-chan struct{}) bool {
	select {
	case <-t.first:
		return true
	default:
	}
	select {
	case <-t.first:
		return true
	case <-ctx.Done():
		return false
	case <-closing:
		return false
	}
}

// leave gives the place up, and the turn to the next.
func (t *turn) leave() {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	wasFirst := t.line.turns.Front() == t.place
	t.line.turns.Remove(t.place)
	switch next := t.line.turns.Front(); {
	case next == nil:
		delete(t.queue.lines, t.key)
	case wasFirst:
		close(next.Value.(*turn).first)
	}
}

// told notes what the first was told, for those behind it who give up.
func (t *turn) told(left time.Duration) {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	t.line.left = left
}

func (t *turn) left() time.Duration {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	return t.line.left
}
