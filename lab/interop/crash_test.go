//go:build unix

package interop_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/lab/interop"
)

// crash kills the process that holds locks while the other waits, which gets them when the TTL is over: a lock, and two
// that are joined. It ends the stage.
func crash(t *testing.T, s *stage) {
	s.afterDeath(t, s.golang, s.java)
	s.afterDeath(t, s.java, s.place.golang(t, short))
}

func (s *stage) afterDeath(t *testing.T, victim, other *party) {
	name := "crash-" + victim.name
	several := as("multi", name+"-a,"+name+"-b")
	victim.must("x", "lock", lock(name)...)
	victim.must("y", "lock", several...)
	waiting, forSeveral := other.begin("x", "lock", lock(name)...), other.begin("y", "lock", several...)
	for _, awaited := range []string{name, name + "-a"} {
		s.awaitListener(t, awaited)
	}
	victim.kill()
	for _, left := range []string{name, name + "-a", name + "-b"} {
		if ttl := s.rdb.PTTL(t.Context(), left).Val(); ttl > short {
			t.Errorf("what %s has left of %s lasts for %v", victim.name, left, ttl)
		}
	}
	killed := time.Now()
	for what, answered := range map[string]<-chan interop.Answer{"the lock": waiting, "both": forSeveral} {
		a := other.answer(answered, within)
		if a.Failed {
			t.Errorf("%s: %s: %s", other.name, what, a.Value)
		}
		later := time.Duration(a.Ended-killed.UnixMicro()) * time.Microsecond
		t.Logf("%s died, %s had %s %v later; the TTL is %v", victim.name, other.name, what, later, short)
	}
	other.must("x", "unlock", lock(name)...)
	other.must("y", "unlock", several...)
}

// paused stops the process that holds the lock for longer than its TTL. When it continues, it gets the error that the lock
// is not its own any more, and does not take it from its successor.
func paused(t *testing.T, s *stage) {
	for _, c := range []struct {
		holder, other *party
		refusal       string
	}{
		{s.java, s.golang, "IllegalMonitorStateException"}, {s.golang, s.java, "ErrNotHeld"},
	} {
		name := "paused-" + c.holder.name
		c.holder.must("x", "lock", lock(name)...)
		if err := c.holder.signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		c.other.must("x", "lock", lock(name)...)
		if err := c.holder.signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		if c.holder == s.golang {
			c.holder.want("ErrLeaseLost", "x", "lost", lock(name)...)
		}
		c.holder.want(c.refusal, "x", "unlock", lock(name)...)
		c.holder.want("false", "x", "trylock", lock(name)...)
		c.other.must("x", "unlock", lock(name)...)
	}
}
