package acquire

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
)

// TestLongWaitsDouble: the warnings of a name come at doubling intervals, whichever of its callers asks, and begin anew once
// none waits.
func TestLongWaitsDouble(t *testing.T) {
	t.Parallel()
	w := LongWaits{First: 10 * time.Second}
	due := func(name string, last int) (seconds []int) {
		for now := range last {
			for _, since := range []int{0, 3} { // of two callers
				at := time.Duration(now) * time.Second
				if w.Due(name, at-time.Duration(since)*time.Second, keepalive.Instant(at)) {
					seconds = append(seconds, now)
				}
			}
		}
		return seconds
	}
	if got := due("a", 100); !slices.Equal(got, []int{10, 20, 40, 80}) {
		t.Errorf("due at %v", got)
	}
	if got := due("b", 15); !slices.Equal(got, []int{10}) {
		t.Errorf("another name: due at %v", got)
	}
	w.Forget("a")
	w.Forget("a")
	w.Forget("b")
	if n := w.names.Load(); n != 0 || len(w.byName) != 0 {
		t.Errorf("%d names left", n)
	}
	if got := due("a", 15); !slices.Equal(got, []int{10}) {
		t.Errorf("after Forget: due at %v", got)
	}
	if w.First = 0; w.Due("c", time.Hour, 0) {
		t.Error("due although switched off")
	}
}

// TestLateLongWait: a first warning that is late does not delay the second.
func TestLateLongWait(t *testing.T) {
	t.Parallel()
	w := LongWaits{First: 10 * time.Second}
	for _, step := range []struct {
		at   time.Duration
		want bool
	}{{13 * time.Second, true}, {19 * time.Second, false}, {20 * time.Second, true}, {39 * time.Second, false}, {40 * time.Second, true}} {
		if got := w.Due("a", step.at, keepalive.Instant(step.at)); got != step.want {
			t.Errorf("after %v: %v", step.at, got)
		}
	}
}
