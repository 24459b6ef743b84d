//go:build unix

package interop_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// force: each side can take the lock from the other, which is told, and does not take it from its successor. Who waits
// on either side is woken.
func force(t *testing.T, s *stage) {
	java, golang := s.java, s.golang
	for _, c := range []struct{ holder, waiter *party }{
		{java, golang}, {java, java}, {golang, java}, {golang, golang},
	} {
		name := "force-" + c.holder.name + "-" + c.waiter.name
		by := s.other(c.holder)
		c.holder.must("x", "lock", lock(name)...)
		waiting := c.waiter.begin("y", "lock", lock(name)...)
		s.awaitListener(t, name)
		forced := by.must("z", "force", lock(name)...)
		a := c.waiter.answer(waiting, within)
		woken := since(forced, a)
		t.Logf("%s: woken after %v", name, woken)
		if a.Failed || forced.Value != "true" || woken > medium*2/3 {
			t.Errorf("%s: forced: %s, woken after %v: %s", name, forced.Value, woken, a.Value)
		}
		mustBeTold(t, c.holder, name)
		c.waiter.must("y", "unlock", lock(name)...)
		by.want("false", "z", "force", lock(name)...)
	}
}

// mustBeTold checks that a process whose lock was forced hears of that.
func mustBeTold(t *testing.T, q *party, name string) {
	t.Helper()
	if q.name == "java" {
		q.want("IllegalMonitorStateException", "x", "unlock", lock(name)...)
		return
	}
	q.want("ErrLeaseLost", "x", "lost", lock(name)...)
	q.want("ErrNotHeld", "x", "unlock", lock(name)...)
}

// forcedStaysFree: the renewals of a holder that has not heard of it yet do not bring back a lock that was
// forced. Another lock of that holder shows when it has renewed what it thinks to hold.
func forcedStaysFree(t *testing.T, s *stage) {
	for _, holder := range []*party{s.java, s.golang} {
		by := s.other(holder)
		holder.must("x", "lock", lock("forced")...)
		holder.must("y", "lock", lock("witness")...)
		by.want("true", "x", "force", lock("forced")...)
		for range 2 {
			awaitRenewal(t, s.place, "witness")
		}
		if n := s.rdb.Exists(t.Context(), "forced").Val(); n != 0 {
			t.Errorf("%s has renewed a lock that was forced", holder.name)
		}
		mustBeTold(t, holder, "forced")
		holder.must("y", "unlock", lock("witness")...)
	}
}

// awaitRenewal waits until the TTL of a key has been made longer.
func awaitRenewal(t *testing.T, p *place, name string) {
	t.Helper()
	last := time.Duration(0)
	testkit.Eventually(t, within, "a renewal of "+name, func() bool {
		before := last
		last = p.rdb.PTTL(t.Context(), name).Val()
		return before > 0 && last > before+short/10
	})
}

// forceKinds: holdfast takes from Java what is of any kind, and Redisson from Go too, except as a read or write lock,
// which looks for a mode of its own.
func forceKinds(t *testing.T, s *stage) {
	for _, kind := range javaKinds {
		name := "force-java-" + kind
		s.java.must("x", "lock", as(kind, name)...)
		s.golang.want("true", "x", "force", lock(name)...)
		s.golang.want("true", "x", "trylock", lock(name)...)
		s.java.want("IllegalMonitorStateException", "x", "unlock", as(kind, name)...)
		s.golang.must("x", "unlock", lock(name)...)
	}
	for _, javaKind := range javaKinds {
		takes := javaKind != "read" && javaKind != "write"
		for _, kind := range goKinds {
			name := "force-go-" + kind + "-" + javaKind
			s.golang.must(name, "lock", as(kind, name)...)
			s.java.want(strconv.FormatBool(takes), "x", "force", as(javaKind, name)...)
			if takes {
				s.java.want("true", "x", "trylock", as("lock", name)...)
				s.golang.want("ErrNotHeld", name, "unlock", as(kind, name)...)
				s.java.must("x", "unlock", as("lock", name)...)
			} else {
				s.golang.must(name, "unlock", as(kind, name)...)
			}
		}
	}
}
