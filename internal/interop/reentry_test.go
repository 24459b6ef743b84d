//go:build unix

package interop_test

import (
	"testing"
	"time"
)

// long is a TTL that outlasts a test: nobody is freed by it.
const long = 30 * time.Second

// each runs a test on every version of Redisson.
func each(t *testing.T, test func(t *testing.T, version string)) {
	t.Helper()
	for _, version := range versions(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			test(t, version)
		})
	}
}

// lock are the arguments for a Mutex, which is an RLock in Java.
func lock(name string) []any { return []any{"kind", "lock", "name", name} }

// TestReentry: each side counts its own entries, and the other stays out until the last of them is over.
func TestReentry(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, version string) {
		p := single(t)
		java, golang := p.java(t, version, long), p.golang(t, long)
		for _, pair := range [][2]*party{{java, golang}, {golang, java}} {
			holder, other := pair[0], pair[1]
			for range 3 {
				holder.must("a", "lock", lock("name")...)
			}
			for left := 3; left > 0; left-- {
				if got := holdsOf(t, p, "name"); got != left {
					t.Errorf("%s holds it %d times in Redis, want %d", holder.name, got, left)
				}
				holder.want("false", "b", "trylock", lock("name")...)
				other.want("false", "a", "trylock", lock("name")...)
				java.want("true", "a", "locked", lock("name")...)
				holder.must("a", "unlock", lock("name")...)
			}
			java.want("false", "a", "locked", lock("name")...)
			other.want("true", "a", "trylock", lock("name")...)
			other.must("a", "unlock", lock("name")...)
		}
	})
}

// TestReentryOfOtherSide: a Go caller that says that it is the Java thread which holds the lock enters it, and neither
// ends the hold of the other.
func TestReentryOfOtherSide(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, version string) {
		p := single(t)
		java, golang := p.java(t, version, long), p.golang(t, long)
		java.must("a", "lock", lock("name")...)
		owner := ownerOf(t, p, "name")
		golang.want("true", "a", "trylock", append(lock("name"), "owner", owner)...)
		java.want("2", "a", "holds", lock("name")...)
		java.must("a", "unlock", lock("name")...)
		java.want("false", "b", "trylock", lock("name")...)
		java.must("a", "lock", lock("name")...)
		golang.must("a", "unlock", lock("name")...)
		java.want("1", "a", "holds", lock("name")...)
		golang.want("false", "b", "trylock", lock("name")...)
		java.must("a", "unlock", lock("name")...)
		golang.want("true", "b", "trylock", lock("name")...)
	})
}
