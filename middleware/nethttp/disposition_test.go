package httplock

import "testing"

// TestDispositionString: every value has a text, also one that is no Disposition.
func TestDispositionString(t *testing.T) {
	t.Parallel()
	for d, want := range map[Disposition]string{
		Auto: "auto", Held: "held", Held + 1: "Disposition(4)", Auto - 1: "Disposition(-1)",
	} {
		if got := d.String(); got != want {
			t.Errorf("%d: %q, want %q", int(d), got, want)
		}
	}
}
