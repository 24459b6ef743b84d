package core

import (
	"errors"

	"github.com/holdfast-go/holdfast/core/internal/lockscript"
	"github.com/holdfast-go/holdfast/core/internal/oncescript"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// The first waiter of a queue may get an answer that holds for others behind it: a Once was completed. This file gives
// them that answer at once. Why: one after the other, 500 waiters take 500 round trips.

// question is what an answer depends on beside the record: callers of one [Once] key with equal questions get equal
// answers from one state of Redis.
type question struct {
	ack              transport.Ack
	fingerprint      string
	holdFailures     bool
	group            oncescript.Group
	size             int64 // that the attempt counts in the group
	earliest, latest any
}

// questionOf returns nil for a lock, to which no answer holds for two.
func questionOf(h *lockscript.Hold) any {
	r, ok := h.Own.(*oncescript.Terms)
	if !ok {
		return nil
	}
	return question{
		ack: h.Ack, fingerprint: string(r.Fingerprint), holdFailures: r.HoldFailures, group: r.Group,
		size: oncescript.Counted(r.Content(r.MaxValue)), earliest: oncescript.WindowBound(r.Earliest), latest: oncescript.WindowBound(r.Latest),
	}
}

// errAskAlone sends a waiter out of its queue to ask by itself.
var errAskAlone = errors.New("ask alone")

// startAsking notes which waiters are in the queue before the first one asks. Only these may be given its answer. Why: (1) the
// first asks, and Redis answers "completed"; (2) the record is forgotten; (3) a waiter comes, whose caller knows of that;
// (4) the answer arrives. It is outdated for that waiter.
func (t *localWaiter) startAsking() {
	if t.question == nil {
		return
	}
	t.lists.mu.Lock()
	defer t.lists.mu.Unlock()
	t.list.asked = t.list.entered
}

// share gives a refusal to the waiters that came before the first one asked and have the same question. The others keep
// their places. But if the record is settled, waiting helps them no more: they are sent to ask at the same time, each for
// itself. Only the first may call it.
func (t *localWaiter) share(refusal error) {
	if t.question == nil {
		return
	}
	refusal, settled := ownRefusal(refusal), settles(refusal)
	t.lists.mu.Lock()
	defer t.lists.mu.Unlock()
	var next *localWaiter
	for other := t.behind; other != nil && other.arrival <= t.list.asked; other = next {
		next = other.behind
		switch {
		case other.question == t.question:
			other.dismissLocked(refusal)
		case settled:
			other.dismissLocked(errAskAlone)
		}
	}
}

// settles reports whether a refusal says that no attempt will begin unless an operator decides so.
func settles(refusal error) bool {
	var unknown *OutcomeUnknownError
	return errors.Is(refusal, ErrCompleted) || errors.As(refusal, &unknown) && unknown.Record.State == StateUnknown
}

// ownRefusal returns a copy of a refusal, so that callers may write to what they get. Other errors it returns as they are.
func ownRefusal(refusal error) error {
	switch e := refusal.(type) {
	case *CompletedError:
		return &CompletedError{Record: e.Record.clone()}
	case *OutcomeUnknownError:
		return &OutcomeUnknownError{Record: e.Record.clone()}
	case *TooManyKeysError:
		own := *e
		return &own
	case *OutsideWindowError:
		own := *e
		return &own
	}
	return refusal
}
