//go:build unix

package interop_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/lab/interop"
)

// The kinds of locks of both sides.
var (
	goKinds   = []string{"lock", "fair", "read", "write"}
	javaKinds = []string{"lock", "fair", "fenced", "spin", "read", "write"}
)

// kinds: every kind of one side keeps every kind of the other out, and lets it in after
// an unlock.
func kinds(t *testing.T, s *stage) {
	java, golang := s.java, s.golang
	for _, goKind := range goKinds {
		for _, javaKind := range javaKinds {
			t.Run(goKind+" and "+javaKind, func(t *testing.T) {
				t.Parallel()
				in, out := turn{golang.forTest(t), goKind}, turn{java.forTest(t), javaKind}
				in.keepsOut(t, out)
				out.keepsOut(t, in)
			})
		}
	}
}

// modeless: Redisson's read-write lock enters what its RLock holds, because that has no mode; what a Mutex holds has one.
func modeless(t *testing.T, s *stage) {
	for _, kind := range []string{"read", "write"} {
		s.java.must("x", "lock", lock("java-"+kind)...)
		s.java.want("true", "y", "trylock", as(kind, "java-"+kind)...)
		s.golang.must("x", "lock", lock("go-"+kind)...)
		s.java.want("false", "y", "trylock", as(kind, "go-"+kind)...)
		s.golang.must("x", "unlock", lock("go-"+kind)...)
	}
}

// turn is a lock of a kind, taken by one side.
type turn struct {
	*party
	kind string
}

// keepsOut lets one side hold a lock that the other asks for, with threads of their own.
func (in turn) keepsOut(t *testing.T, out turn) {
	t.Helper()
	name := in.name + "-" + in.kind + "-" + out.kind
	in.must(name, "lock", as(in.kind, name)...)
	if a := out.must(name, "trylock", as(out.kind, name)...); a.Value != "false" {
		t.Errorf("%s: both hold it", name)
	}
	waiting := out.begin(name, "lock", as(out.kind, name)...)
	select {
	case a := <-waiting:
		t.Errorf("%s: both hold it: %s", name, a.Value)
		return
	case <-time.After(short * 3 / 2): // longer than what is held lasts without renewal
	}
	released := in.must(name, "unlock", as(in.kind, name)...)
	entered := out.answer(waiting, within)
	if entered.Failed {
		t.Errorf("%s: %s", name, entered.Value)
	}
	t.Logf("%s %s had it %v after %s %s", out.name, out.kind, since(released, entered), in.name, in.kind)
	out.must(name, "unlock", as(out.kind, name)...)
	in.must(name, "lock", as(in.kind, name)...)
	in.must(name, "unlock", as(in.kind, name)...)
}

// since is the time from before the one until after the other.
func since(first, last interop.Answer) time.Duration {
	return time.Duration(last.Ended-first.Began) * time.Microsecond
}
