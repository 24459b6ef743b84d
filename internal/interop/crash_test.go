//go:build unix

package interop_test

import (
	"syscall"
	"testing"
	"time"
)

// crash kills the process that holds the lock while the other waits, which gets it when the TTL is over. It ends the
// stage.
func crash(t *testing.T, s *stage) {
	s.afterDeath(t, s.golang, s.java)
	s.afterDeath(t, s.java, s.place.golang(t, short))
}

func (s *stage) afterDeath(t *testing.T, victim, other *party) {
	name := "crash-" + victim.name
	victim.must("x", "lock", lock(name)...)
	waiting := other.begin("x", "lock", lock(name)...)
	s.awaitListener(t, name)
	victim.kill()
	if ttl := s.rdb.PTTL(t.Context(), name).Val(); ttl > short {
		t.Errorf("what %s has left lasts for %v", victim.name, ttl)
	}
	killed := time.Now()
	if a := other.answer(waiting, within); a.Failed {
		t.Errorf("%s: %s", other.name, a.Value)
	}
	t.Logf("%s died, %s had the lock %v later; the TTL is %v", victim.name, other.name, time.Since(killed), short)
	other.must("x", "unlock", lock(name)...)
}

// paused stops the process that holds the lock for longer than its TTL. When it goes on, it is told that the lock
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
