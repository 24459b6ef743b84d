package httplock

import (
	"testing"
)

// TestDispositionNames: a disposition is printed by its name.
func TestDispositionNames(t *testing.T) {
	t.Parallel()
	for disposition, want := range map[Disposition]string{
		Auto: "auto", Completed: "completed", Released: "released", Held: "held",
	} {
		if got := disposition.String(); got != want {
			t.Errorf("%d is called %q, want %q", int(disposition), got, want)
		}
	}
}
