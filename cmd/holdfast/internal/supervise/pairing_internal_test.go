package supervise

import (
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestPairing: what both processes receive is not forwarded, all else is, once and in the order of arrival.
func TestPairing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		forwarded := make(chan syscall.Signal, 10)
		p := &pairing{forward: func(sig syscall.Signal) { forwarded <- sig }}
		want := func(signals ...syscall.Signal) {
			t.Helper()
			time.Sleep(2 * keeperSignalTimeout)
			synctest.Wait()
			var got []syscall.Signal
			for len(forwarded) > 0 {
				got = append(got, <-forwarded)
			}
			if !slices.Equal(got, signals) {
				t.Errorf("forwarded %v, want %v", got, signals)
			}
		}
		p.received(fromFront, syscall.SIGINT)
		want(syscall.SIGINT)
		p.received(fromKeeper, syscall.SIGTERM)
		want(syscall.SIGTERM)
		p.received(fromFront, syscall.SIGINT)
		p.received(fromKeeper, syscall.SIGINT)
		want()
		p.received(fromKeeper, syscall.SIGINT)
		time.Sleep(keeperSignalTimeout / 2)
		p.received(fromFront, syscall.SIGINT)
		want()
		p.received(fromFront, syscall.SIGINT)
		p.received(fromKeeper, syscall.SIGTERM)
		time.Sleep(time.Millisecond)
		p.received(fromFront, syscall.SIGINT)
		want(syscall.SIGINT, syscall.SIGINT, syscall.SIGTERM)
	})
}
