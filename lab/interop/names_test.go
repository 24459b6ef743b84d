//go:build unix

package interop_test

import "testing"

// names: what holdfast calls prefix and name is the name in Java, also if braces choose the Cluster slot. Each side is
// woken.
func names(t *testing.T, s *stage) {
	const prefix = "lock:"
	prefixed := s.place.golang(t, medium, "prefix", prefix)
	for _, name := range []string{"order:42", "{user:1}:cart", "a{user:1}", "Ärger"} {
		for _, c := range []struct {
			holder, waiter *party
			held, awaited  string
		}{
			{prefixed, s.java, name, prefix + name}, {s.java, prefixed, prefix + name, name},
		} {
			c.holder.must("x", "lock", lock(c.held)...)
			waiting := c.waiter.begin("x", "lock", lock(c.awaited)...)
			s.awaitListener(t, prefix+name)
			released := c.holder.must("x", "unlock", lock(c.held)...)
			a := c.waiter.answer(waiting, within)
			if woken := since(released, a); a.Failed || a.Ended < released.Began || woken > medium*2/3 {
				t.Errorf("%s: %s had it after %v: %s", name, c.waiter.name, woken, a.Value)
			}
			c.waiter.must("x", "unlock", lock(c.awaited)...)
		}
	}
}
