package script

import (
	"testing"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// TestRenewalsAreAcknowledged: replicas have to acknowledge each renewal that counts, also one that was made in part.
// Otherwise a lease would outlive the expiry that a replica knows.
func TestRenewalsAreAcknowledged(t *testing.T) {
	t.Parallel()
	renewed := func(status int64) bool {
		held, err := readRenewal(status)
		return held && err == nil
	}
	for status := int64(-10); status < 300; status++ {
		if renewed(status) && !transport.Succeeded(status) {
			t.Errorf("a renewal that was answered %d counts without acknowledgement", status)
		}
	}
}
