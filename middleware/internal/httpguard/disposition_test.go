package httpguard_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
)

// TestDispositionNames: a disposition is printed by its name.
func TestDispositionNames(t *testing.T) {
	t.Parallel()
	for disposition, want := range map[httpguard.Disposition]string{
		httpguard.Auto: "auto", httpguard.Completed: "completed", httpguard.Released: "released", httpguard.Held: "held",
	} {
		if got := disposition.String(); got != want {
			t.Errorf("%d is called %q, want %q", int(disposition), got, want)
		}
	}
}
