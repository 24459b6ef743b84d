package core

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
)

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
		began := time.Now()
		steady := func() keepalive.Instant { return keepalive.Instant(time.Since(began)) }
		l := new(Lease)
		renewer := keepalive.NewRenewer[script.Hold](steady, drift)
		renewer.Add(&l.entry, keptLease{l}, keepalive.Terms{TTL: time.Minute, Granted: time.Minute, Fixed: true})
		end := time.Now().Add(time.Duration(renewer.ValidUntil(&l.entry)))
		l.engine = &engine{renewer: renewer, now: func() keepalive.Instant {
			now := steady()
			time.Sleep(10 * time.Second) // the process is stopped
			return now
		}}
		if told := l.ValidUntil(); told.After(end) {
			t.Errorf("valid until %v after its end", told.Sub(end))
		}
		renewer.Close()
	})
}
