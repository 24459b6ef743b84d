package acquire

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
)

// TestCrowd: each name has room of its own, and what is left is nothing.
func TestCrowd(t *testing.T) {
	t.Parallel()
	c := NewWaits(2, 0)
	for i, step := range []struct {
		name  string
		leave bool // or enter
		want  bool
	}{
		{name: "a", want: true},
		{name: "a", want: true},
		{name: "a", want: false},
		{name: "b", want: true},
		{name: "a", leave: true},
		{name: "a", want: true},
		{name: "a", want: false},
	} {
		if step.leave {
			c.remove(step.name)
		} else if got := c.tryAdd(step.name); got != step.want {
			t.Errorf("step %d: %v", i+1, got)
		}
	}
	c.remove("a")
	c.remove("a")
	c.remove("b")
	if len(c.byLock) != 0 {
		t.Errorf("left: %v", c.byLock)
	}
}

// TestLongWaitsDouble: the warnings of a name come at doubling intervals, whichever of its callers asks, and begin anew once
// none waits.
func TestLongWaitsDouble(t *testing.T) {
	t.Parallel()
	w := NewWaits(9, 10*time.Second)
	due := func(name string, last int) (seconds []int) {
		w.tryAdd(name)
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
	w.remove("a")
	w.remove("b")
	if n := len(w.byLock); n != 0 {
		t.Errorf("%d names left", n)
	}
	if got := due("a", 15); !slices.Equal(got, []int{10}) {
		t.Errorf("after the last has left: due at %v", got)
	}
	if w.WarnAfter = 0; w.Due("c", time.Hour, 0) {
		t.Error("due although switched off")
	}
}

// TestLateLongWait: a first warning that is late does not delay the second.
func TestLateLongWait(t *testing.T) {
	t.Parallel()
	w := NewWaits(9, 10*time.Second)
	w.tryAdd("a")
	for _, step := range []struct {
		at   time.Duration
		want bool
	}{{13 * time.Second, true}, {19 * time.Second, false}, {20 * time.Second, true}, {39 * time.Second, false}, {40 * time.Second, true}} {
		if got := w.Due("a", step.at, keepalive.Instant(step.at)); got != step.want {
			t.Errorf("after %v: %v", step.at, got)
		}
	}
}
