package core

import (
	"testing"
)

// TestConfirmationIsNews: whoever listens looks again once the subscription is there, also when it came later.
func TestConfirmationIsNews(t *testing.T) {
	t.Parallel()
	s := newListeners(nil, nil)
	s.closed = true // no connection
	first := s.to("c")
	if first.confirmed() || len(first.C) != 0 {
		t.Error("confirmed before anything was said")
	}
	s.tell("c", true)
	if second := s.to("c"); len(first.C) != 1 || len(second.C) != 1 || !second.confirmed() {
		t.Errorf("%d and %d notes, confirmed %v", len(first.C), len(second.C), second.confirmed())
	}
	s.forget()
	if first.confirmed() || len(s.missing()) != 1 {
		t.Error("the topic outlived its connection")
	}
}

// TestIdleTopicsAreDropped: after a while, and never while somebody listens.
func TestIdleTopicsAreDropped(t *testing.T) {
	t.Parallel()
	s := newListeners(nil, nil)
	s.closed = true
	busy, idle := s.to("busy"), s.to("idle")
	idle.close()
	for round := range idleRounds {
		if got := s.prune(); len(got) != 0 {
			t.Errorf("round %d: %q dropped", round, got)
		}
	}
	if got := s.prune(); len(got) != 1 || got[0] != "idle" || s.empty() {
		t.Errorf("%q dropped", got)
	}
	busy.close()
}
