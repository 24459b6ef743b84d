package main

import (
	"testing"
	"time"
)

// TestSettlement leaves the shop open until two ticks of the schedule are settled, and closes it before it counts: then
// no replica is still at one of them.
func TestSettlement(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		unguarded bool
		least     int // settlements for a tick
	}{"guarded": {false, 1}, "unguarded": {true, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := small
			if test.unguarded {
				cfg.guards = unlocked
			}
			s := open(t, cfg)
			store := s.replicas[0].shop.store
			awaitTicks(t, store, 2)
			for _, r := range s.replicas {
				<-r.cron.Stop().Done()
			}
			a, err := store.audit(t.Context(), item, cfg.stock)
			if err != nil {
				t.Fatal(err)
			}
			if once := a.settlements == a.ticks; once == test.unguarded || a.settlements < test.least*a.ticks {
				t.Errorf("%d settlements for %d ticks", a.settlements, a.ticks)
			}
		})
	}
}

// awaitTicks returns once so many ticks are settled.
func awaitTicks(t *testing.T, s *store, ticks int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		a, err := s.audit(t.Context(), item, small.stock)
		switch {
		case err != nil:
			t.Fatal(err)
		case a.ticks >= ticks:
			return
		case time.Now().After(deadline):
			t.Fatalf("%d ticks are settled, want %d", a.ticks, ticks)
		}
		time.Sleep(20 * time.Millisecond) // between two looks
	}
}
