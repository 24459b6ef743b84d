//go:build unix

package interop_test

import (
	"testing"
	"time"
)

// several: one lock keeps those out that are joined with it, and the other way, on either side. After a refusal nothing
// is held. A waiter on either side has them soon after the unlock.
func several(t *testing.T, s *stage) {
	for _, c := range []struct{ in, out turn }{
		{turn{s.golang, "lock"}, turn{s.java, "multi"}},
		{turn{s.java, "lock"}, turn{s.golang, "multi"}},
		{turn{s.java, "multi"}, turn{s.golang, "multi"}},
		{turn{s.golang, "multi"}, turn{s.java, "multi"}},
		{turn{s.java, "multi"}, turn{s.golang, "lock"}},
		{turn{s.golang, "multi"}, turn{s.java, "lock"}},
	} {
		prefix := "several-" + c.in.name + "-" + c.in.kind + "-" + c.out.kind + "-"
		all := prefix + "a," + prefix + "b," + prefix + "c"
		for _, member := range []string{"a", "b", "c"} {
			names := map[string]string{"lock": prefix + member, "multi": all}
			held, asked := as(c.in.kind, names[c.in.kind]), as(c.out.kind, names[c.out.kind])
			c.in.must("x", "lock", held...)
			c.out.want("false", "y", "trylock", asked...)
			if c.in.kind == "lock" {
				s.mustBeFree(t, prefix, member)
			}
			waiting := c.out.begin("y", "trylock", append(asked, "wait", within.Milliseconds())...)
			s.awaitListener(t, prefix+firstAwaited(c.in.kind, c.out.kind, member))
			released := c.in.must("x", "unlock", held...)
			a := c.out.answer(waiting, 2*within)
			woken := since(released, a)
			if a.Failed || a.Value != "true" || woken > medium*2/3 {
				t.Errorf("%s %s after %v: %s", c.out.name, asked, woken, a.Value)
			}
			t.Logf("%s %s %v after %s %s of %s", c.out.name, c.out.kind, woken, c.in.name, c.in.kind, member)
			c.out.must("y", "unlock", asked...)
			s.mustBeFree(t, prefix, "")
		}
	}
}

// firstAwaited is the member at which a call waits: the first that it finds taken.
func firstAwaited(in, out, member string) string {
	if in == "multi" && out == "multi" {
		return "a"
	}
	return member
}

// mustBeFree checks that the members are free, except one.
func (s *stage) mustBeFree(t *testing.T, prefix, except string) {
	t.Helper()
	for _, member := range []string{"a", "b", "c"} {
		if n := s.rdb.Exists(t.Context(), prefix+member).Val(); n != 0 && member != except {
			t.Errorf("%s%s is held", prefix, member)
		}
	}
}

// oppositeOrders: Redisson takes the members in the order of the call. If a Go caller holds the second and then asks for
// the first, Java's wait for the second ends, and it gives the first back.
func oppositeOrders(t *testing.T, s *stage) {
	s.golang.must("x", "lock", lock("opposite-a")...)
	inJava := s.java.begin("y", "lock", as("multi", "opposite-b,opposite-a")...)
	s.awaitListener(t, "opposite-a") // so Java has the other
	inGo := s.golang.begin("x", "lock", lock("opposite-b")...)
	a := s.golang.answer(inGo, within)
	if a.Failed {
		t.Fatal(a.Value)
	}
	t.Logf("Go had both after %v", time.Duration(a.Ended-a.Began)*time.Microsecond)
	s.golang.must("x", "unlock", lock("opposite-b")...)
	s.golang.must("x", "unlock", lock("opposite-a")...)
	if a := s.java.answer(inJava, within); a.Failed {
		t.Fatal(a.Value)
	}
	s.java.must("y", "unlock", as("multi", "opposite-b,opposite-a")...)
}

// oneOfSeveralLost: Redisson's unlock ends at the first member that is not its own any more. The members behind it stay
// locked, and its watchdog continues renewing them. holdfast releases all.
func oneOfSeveralLost(t *testing.T, s *stage) {
	for _, c := range []struct {
		holder *party
		want   string
		left   int64
	}{{s.java, "IllegalMonitorStateException", 1}, {s.golang, "ErrNotHeld", 0}} {
		first, second := "lost-"+c.holder.name+"-a", "lost-"+c.holder.name+"-b"
		all := as("multi", first+","+second)
		c.holder.must("x", "lock", all...)
		s.other(c.holder).want("true", "z", "force", lock(first)...)
		c.holder.want(c.want, "x", "unlock", all...)
		if n := s.rdb.Exists(t.Context(), second).Val(); n != c.left {
			t.Errorf("%s has released all but %d of the others, want %d", c.holder.name, n, c.left)
		}
		if c.left > 0 {
			awaitRenewal(t, s.place, second)
		}
		s.golang.must("z", "force", lock(second)...)
	}
}

// joint are what contends for three locks: with members in one order everywhere, and in opposite orders.
var joint = map[string][][]any{
	"same order":      {as("multi", "a,b,c"), as("multi", "a,b"), as("multi", "b,c"), as("lock", "b")},
	"opposite orders": {as("multi", "a,b,c"), as("multi", "c,b,a"), as("multi", "c,b"), as("lock", "b")},
}

// TestMultiContention lets both sides contend for three locks, one of them alone and several joined.
func TestMultiContention(t *testing.T) {
	t.Parallel()
	version := versions(t)[0]
	for order, what := range joint {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			p := single(t)
			parties := []*party{p.java(t, version, long), p.golang(t, long)}
			contend(t, parties, len(what), *contest/2, what...)
			for _, name := range []string{"a", "b", "c"} { // every thread locks b
				holds := p.journal(t, name)
				p.mustNotMeet(t, name, holds)
				mustGrow(t, holds)
				t.Logf("lock %s", name)
				mustAllHold(t, parties, holds)
			}
		})
	}
}
