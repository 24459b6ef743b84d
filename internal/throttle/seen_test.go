package throttle

import (
	"strconv"
	"testing"
)

// TestSeen: each key is new once, and many keys do not fill the memory.
func TestSeen(t *testing.T) {
	t.Parallel()
	var s Seen
	for i := range mostSeen {
		if key := strconv.Itoa(i); !s.First(key) || s.First(key) {
			t.Fatalf("key %s is not new once", key)
		}
	}
	if s.First("0") || !s.First("more") || len(s.keys) != 1 {
		t.Errorf("%d keys after the last one", len(s.keys))
	}
}
