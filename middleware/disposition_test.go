package middleware_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/middleware"
)

// TestDispositionNames: a disposition is printed by its name.
func TestDispositionNames(t *testing.T) {
	t.Parallel()
	for disposition, want := range map[middleware.Disposition]string{
		middleware.Auto: "auto", middleware.Completed: "completed", middleware.Released: "released", middleware.Held: "held",
	} {
		if got := disposition.String(); got != want {
			t.Errorf("%d is called %q, want %q", int(disposition), got, want)
		}
	}
}
