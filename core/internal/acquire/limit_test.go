package acquire

import "testing"

// TestCrowd: each name has room of its own, and what is left is nothing.
func TestCrowd(t *testing.T) {
	t.Parallel()
	c := NewLimit(2)
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
	if len(c.waiting) != 0 {
		t.Errorf("left: %v", c.waiting)
	}
}
