package core

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// TestExtendedLeaseMakesRoom: extending the lease that is next leaves the others' ends in order, and a renewal
// takes nothing of the extension away.
func TestExtendedLeaseMakesRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStand(func(_ int, answer func(bool, error)) { answer(true, nil) })
		next := s.lease(t, lockConfig{ttl: time.Minute, fixed: true})
		other := s.lease(t, lockConfig{ttl: 2 * time.Minute, fixed: true})
		s.extended(next, s.now(), time.Hour)
		<-other.Done()
		if want := s.trustedUntil(0, 2*time.Minute); s.now() != want {
			t.Errorf("ended at %v, want %v", time.Duration(s.now()), time.Duration(want))
		}
		renewed := s.lease(t, minute)
		s.extended(renewed, s.now(), time.Hour)
		until := s.validUntil(renewed)
		time.Sleep(5 * time.Minute)
		if len(s.times()) == 0 || s.validUntil(renewed) < until {
			t.Errorf("after %d renewals valid for %v less", len(s.times()), until.Sub(s.validUntil(renewed)))
		}
		s.close()
	})
}

// TestDriftIsTakenOff: a holder stops before Redis does, by the rounding and by what clocks may differ.
func TestDriftIsTakenOff(t *testing.T) {
	t.Parallel()
	for _, ttl := range []time.Duration{minTTL, time.Second, time.Hour} {
		early := drift(ttl)
		if early < time.Millisecond+ttl/1000 || early > ttl/4 {
			t.Errorf("a lease of %v ends %v early", ttl, early)
		}
	}
}

// TestValidUntilOfAPausedProcess: a process that is stopped between two readings of its clocks is told too early an end,
// never too late a one.
func TestValidUntilOfAPausedProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStand(nil)
		l := s.lease(t, lockConfig{ttl: time.Minute, fixed: true})
		end := time.Now().Add(time.Duration(s.validUntil(l)))
		l.keeper = &keeper{renewer: s.renewer, now: func() clock.Instant {
			now := s.now()
			time.Sleep(10 * time.Second) // the process is stopped
			return now
		}}
		if told := l.ValidUntil(); told.After(end) {
			t.Errorf("valid until %v after its end", told.Sub(end))
		}
		s.close()
	})
}
