//go:build unix

package interop_test

import "testing"

// reentry: each side counts its own entries, and the other stays out until the last of them is over.
func reentry(t *testing.T, s *stage) {
	java, golang := s.java, s.golang
	for _, pair := range [][2]*party{{java, golang}, {golang, java}} {
		holder, other := pair[0], pair[1]
		for range 3 {
			holder.must("a", "lock", lock("reentry")...)
		}
		for left := 3; left > 0; left-- {
			if got := holdsOf(t, s.place, "reentry"); got != left {
				t.Errorf("%s holds it %d times in Redis, want %d", holder.name, got, left)
			}
			holder.want("false", "b", "trylock", lock("reentry")...)
			other.want("false", "a", "trylock", lock("reentry")...)
			java.want("true", "a", "locked", lock("reentry")...)
			holder.must("a", "unlock", lock("reentry")...)
		}
		java.want("false", "a", "locked", lock("reentry")...)
		other.want("true", "a", "trylock", lock("reentry")...)
		other.must("a", "unlock", lock("reentry")...)
	}
}

// reentryOfOtherSide: a Go caller that says that it is the Java thread which holds the lock enters it, and neither
// ends the hold of the other.
func reentryOfOtherSide(t *testing.T, s *stage) {
	java, golang := s.java, s.golang
	java.must("a", "lock", lock("reentry")...)
	owner := ownerOf(t, s.place, "reentry")
	golang.want("true", "a", "trylock", append(lock("reentry"), "owner", owner)...)
	java.want("2", "a", "holds", lock("reentry")...)
	java.must("a", "unlock", lock("reentry")...)
	java.want("false", "b", "trylock", lock("reentry")...)
	java.must("a", "lock", lock("reentry")...)
	golang.must("a", "unlock", lock("reentry")...)
	java.want("1", "a", "holds", lock("reentry")...)
	golang.want("false", "b", "trylock", lock("reentry")...)
	java.must("a", "unlock", lock("reentry")...)
	golang.want("true", "b", "trylock", lock("reentry")...)
}
