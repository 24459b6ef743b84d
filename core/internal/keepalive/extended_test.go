package keepalive

import (
	"testing"
	"testing/synctest"
	"time"
)

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
