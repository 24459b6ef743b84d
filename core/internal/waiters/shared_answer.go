package waiters

import (
	"errors"
)

// The first waiter of a queue may get an answer that holds for others behind it: a Once was completed. This file gives
// them that answer at once. Why: one after the other, 500 waiters take 500 round trips.

// ErrAskAlone sends a waiter out of its queue to ask by itself.
var ErrAskAlone = errors.New("ask alone")

// StartAsking notes which waiters are in the queue before the first one asks. Only these may be given its answer. Why: (1) the
// first asks, and Redis answers "completed"; (2) the record is forgotten; (3) a waiter comes, whose caller knows of that;
// (4) the answer arrives. It is outdated for that waiter.
func (t *Waiter) StartAsking() {
	if t.Question == nil {
		return
	}
	t.lists.mu.Lock()
	defer t.lists.mu.Unlock()
	t.list.asked = t.list.entered
}

// Share gives a refusal to the waiters that came before the first one asked and have the same question. The others keep
// their places. But if the refusal is settled, so that waiting helps no more, they are sent to ask at the same time, each
// for itself. Only the first may call it.
func (t *Waiter) Share(refusal error, settled bool) {
	if t.Question == nil {
		return
	}
	t.lists.mu.Lock()
	defer t.lists.mu.Unlock()
	var next *Waiter
	for other := t.behind; other != nil && other.arrival <= t.list.asked; other = next {
		next = other.behind
		switch {
		case other.Question == t.Question:
			other.dismissLocked(refusal)
		case settled:
			other.dismissLocked(ErrAskAlone)
		}
	}
}
