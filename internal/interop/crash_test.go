//go:build unix

package interop_test

import (
	"syscall"
	"testing"
	"time"
)

// short is the TTL of holders that die. Renewed every third of it, it survives a busy machine.
const short = 3 * time.Second

// TestCrash kills the process that holds the lock while the other waits, which gets it when the TTL is over.
func TestCrash(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, version string) {
		p := single(t)
		for _, dies := range []string{"java", "go"} {
			victim, other := p.java(t, version, short), p.golang(t, short)
			if dies == "go" {
				victim, other = other, victim
			}
			victim.must("x", "lock", lock(dies)...)
			waiting := other.begin("x", "lock", lock(dies)...)
			p.awaitListener(t, dies)
			victim.kill()
			if ttl := p.rdb.PTTL(t.Context(), dies).Val(); ttl > short {
				t.Errorf("what %s has left lasts for %v", dies, ttl)
			}
			killed := time.Now()
			if a := other.answer(waiting, within); a.Failed {
				t.Errorf("%s: %s", other.name, a.Value)
			}
			t.Logf("%s died, %s had the lock %v later; the TTL is %v", dies, other.name, time.Since(killed), short)
			other.must("x", "unlock", lock(dies)...)
		}
	})
}

// TestPaused stops the process that holds the lock for longer than its TTL. When it goes on, it is told that the lock
// is not its own any more, and does not take it from its successor.
func TestPaused(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, version string) {
		p := single(t)
		java, golang := p.java(t, version, short), p.golang(t, short)
		for _, c := range []struct {
			holder, other *party
			refusal       string
		}{
			{java, golang, "IllegalMonitorStateException"}, {golang, java, "ErrNotHeld"},
		} {
			name := c.holder.name
			c.holder.must("x", "lock", lock(name)...)
			if err := c.holder.signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			c.other.must("x", "lock", lock(name)...)
			if err := c.holder.signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			if c.holder == golang {
				golang.want("ErrLeaseLost", "x", "lost", lock(name)...)
			}
			c.holder.want(c.refusal, "x", "unlock", lock(name)...)
			c.holder.want("false", "x", "trylock", lock(name)...)
			c.other.must("x", "unlock", lock(name)...)
		}
	})
}
