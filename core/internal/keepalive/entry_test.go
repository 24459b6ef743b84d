package keepalive

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestHeldLong: a lease is told of at doubling times, whether or not it is renewed, and not after its end.
func TestHeldLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestRenewer(func(_ int, answer func(bool, error)) { answer(true, nil) })
		renewed := s.lease(t, Terms{TTL: time.Minute, WarnAfter: 10 * time.Minute})
		fixed := s.lease(t, Terms{TTL: 2 * time.Hour, Fixed: true, WarnAfter: 15 * time.Minute})
		silent := s.lease(t, minute)
		time.Sleep(45 * time.Minute)
		synctest.Wait()
		if n, m := renewed.long.Load(), fixed.long.Load(); n != 3 || m != 2 || silent.long.Load() != 0 {
			t.Errorf("told %d times of one that is renewed, %d times of a fixed one, want 3 and 2", n, m)
		}
		s.Remove(&renewed.entry)
		time.Sleep(3 * time.Hour)
		if n := renewed.long.Load(); n != 3 {
			t.Errorf("told %d times after the end", n)
		}
		s.Close()
	})
}

// TestHeldLongTogether: of leases that are due together, the first one is told, with the number of the others.
func TestHeldLongTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestRenewer(func(_ int, answer func(bool, error)) { answer(true, nil) })
		var all []*lease
		for range 100 {
			time.Sleep(time.Millisecond)
			all = append(all, s.lease(t, Terms{TTL: time.Minute, WarnAfter: 10 * time.Minute}))
		}
		time.Sleep(11 * time.Minute)
		if n, others := all[0].long.Load(), all[0].others.Load(); n != 1 || others != 99 {
			t.Errorf("told %d times, with %d others", n, others)
		}
		for i, l := range all[1:] {
			if l.long.Load() != 0 {
				t.Errorf("told of lease %d", i+1)
			}
		}
		s.Close()
	})
}
