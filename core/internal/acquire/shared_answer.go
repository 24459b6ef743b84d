package acquire

import "errors"

// The first waiter of a list may get an answer that holds for others behind it: a Once was completed. This file gives
// them that answer at once. Why: one after the other, 500 waiters take 500 round trips.

// errAskAlone dismisses a waiter, which must then ask once by itself, and may enter the list again.
var errAskAlone = errors.New("ask alone")

// startAsking records which waiters are in the list before the first one asks. Only these may be given its answer. The first
// must call it before each request. Why:
//
//  1. The first asks, and Redis answers "completed".
//  2. The record is forgotten.
//  3. A waiter enters the list, whose caller knows of step 2.
//  4. The answer of step 1 arrives. It is outdated for that waiter.
func (t *waiter) startAsking() {
	if t.Question == nil {
		return
	}
	t.lists.mu.Lock()
	defer t.lists.mu.Unlock()
	t.list.asked = t.list.entered
}

// share dismisses, with a refusal, the waiters that came before the first one asked and have the same question. The others
// keep their places. A settled refusal says that waiting helps no waiter. Then those of the others that came before are
// dismissed with errAskAlone, and ask at the same time. Only the first may call it. It stays in the list until leave.
//
// Arrivals are in the order of the list, so it stops at the first waiter that came too late.
func (t *waiter) share(refusal error, settled bool) {
	if t.Question == nil {
		return
	}
	t.lists.mu.Lock()
	defer t.lists.mu.Unlock()
	var next *waiter
	for other := t.behind; other != nil && other.arrival <= t.list.asked; other = next {
		next = other.behind
		switch {
		case other.Question == t.Question:
			other.dismissLocked(refusal)
		case settled:
			other.dismissLocked(errAskAlone)
		}
	}
}
