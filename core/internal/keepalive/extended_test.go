package keepalive

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestLimitOfALease: the end of another lease as a limit ends the lease as MaxHold does. It neither moves an earlier end, nor ends
// the lease with which it is shared.
func TestLimitOfALease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestRenewer(func(_ int, answer func(bool, error)) { answer(true, nil) })
		outer := s.lease(t, Terms{TTL: time.Minute, MaxHold: 5 * time.Minute})
		inner := s.lease(t, Terms{TTL: time.Minute, EndAt: outer.entry.EndAt()})
		shorter := s.lease(t, Terms{TTL: time.Minute, EndAt: outer.entry.EndAt(), MaxHold: 2 * time.Minute})
		unlimited := s.lease(t, Terms{TTL: time.Minute, EndAt: Never})
		s.Remove(&outer.entry)
		for want, l := range map[time.Duration]*lease{2 * time.Minute: shorter, 5 * time.Minute: inner} {
			synctest.Wait()
			if end := time.Duration(l.entry.EndAt()); end != want {
				t.Errorf("ends after %v, want %v", end, want)
			}
		}
		<-inner.Done()
		if s.now().Sub(0) != 5*time.Minute || inner.end.Cause() != HeldTooLong {
			t.Errorf("ended after %v: %v", s.now().Sub(0), inner.end.Cause())
		}
		time.Sleep(time.Hour)
		if unlimited.end.Cause() != nil || outer.end.Cause() != nil {
			t.Error("a lease has ended that had no limit, or was removed")
		}
		s.Close()
	})
}

// TestExtendedLeaseMakesRoom: extending the lease that ends first leaves the ends of the others in order. A later renewal
// does not shorten the extension.
func TestExtendedLeaseMakesRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestRenewer(func(_ int, answer func(bool, error)) { answer(true, nil) })
		next := s.lease(t, Terms{TTL: time.Minute, Fixed: true})
		other := s.lease(t, Terms{TTL: 2 * time.Minute, Fixed: true})
		s.Extended(&next.entry, s.now(), time.Hour)
		<-other.Done()
		if want := s.TrustedUntil(0, 2*time.Minute); s.now() != want {
			t.Errorf("ended at %v, want %v", time.Duration(s.now()), time.Duration(want))
		}
		renewed := s.lease(t, minute)
		s.Extended(&renewed.entry, s.now(), time.Hour)
		until := s.ValidUntil(&renewed.entry)
		time.Sleep(5 * time.Minute)
		if len(s.times()) == 0 || s.ValidUntil(&renewed.entry) < until {
			t.Errorf("after %d renewals valid for %v less", len(s.times()), until.Sub(s.ValidUntil(&renewed.entry)))
		}
		s.Close()
	})
}
