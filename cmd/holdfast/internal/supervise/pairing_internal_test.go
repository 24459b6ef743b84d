//go:build linux || darwin

package supervise

import (
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestPairing: what both processes receive is not forwarded, all else is, once and in the order of arrival. What the supervisor
// handles early is forwarded in any case, once.
func TestPairing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		forwarded := make(chan syscall.Signal, 10)
		p := &pairing{forward: func(sig syscall.Signal) { forwarded <- sig }}
		want := func(signals ...syscall.Signal) {
			t.Helper()
			time.Sleep(2 * supervisorSignalTimeout)
			synctest.Wait()
			var got []syscall.Signal
			for len(forwarded) > 0 {
				got = append(got, <-forwarded)
			}
			if !slices.Equal(got, signals) {
				t.Errorf("forwarded %v, want %v", got, signals)
			}
		}
		p.received(fromParent, syscall.SIGINT, false)
		want(syscall.SIGINT)
		p.received(fromSupervisor, syscall.SIGTERM, false)
		want(syscall.SIGTERM)
		p.received(fromParent, syscall.SIGINT, false)
		p.received(fromSupervisor, syscall.SIGINT, false)
		want()
		p.received(fromSupervisor, syscall.SIGINT, false)
		time.Sleep(supervisorSignalTimeout / 2)
		p.received(fromParent, syscall.SIGINT, false)
		want()
		p.received(fromParent, syscall.SIGINT, false)
		p.received(fromSupervisor, syscall.SIGTERM, false)
		time.Sleep(time.Millisecond)
		p.received(fromParent, syscall.SIGINT, false)
		want(syscall.SIGINT, syscall.SIGINT, syscall.SIGTERM)
		p.received(fromSupervisor, syscall.SIGTERM, true)
		want(syscall.SIGTERM)
		p.received(fromSupervisor, syscall.SIGTERM, true)
		p.received(fromParent, syscall.SIGTERM, false)
		want(syscall.SIGTERM)
		p.received(fromParent, syscall.SIGTERM, false)
		p.received(fromSupervisor, syscall.SIGTERM, true)
		want(syscall.SIGTERM)
	})
}
