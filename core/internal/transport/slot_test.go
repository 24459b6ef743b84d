package transport

import "testing"

// TestSlot compares slots with the ones that a server computes.
func TestSlot(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]uint16{ // as CLUSTER KEYSLOT says
		"123456789": 12739, "": 0, "foo": 12182, "{foo}bar": 12182, "x{foo}{bar}": 12182, "foo{}": 5542, "lock:{user:1}:cart": 10778,
	} {
		if got := Slot(key); got != want {
			t.Errorf("slot of %q is %d, want %d", key, got, want)
		}
	}
}
