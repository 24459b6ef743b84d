//go:build unix

package interop_test

import (
	"testing"
	"time"
)

const (
	// long is a TTL that outlasts a test: nobody is freed or woken by it.
	long = 30 * time.Second
	// medium is the TTL where a Go holder has to be told of a loss, at its next renewal, and where who waits must not
	// seem to be woken by it.
	medium = 9 * time.Second
	// short is the TTL of holders that die. Renewed every third of it, it survives a busy machine.
	short = 3 * time.Second
)

// stage is a server, a process of each side, and the TTL of both. To start a JVM takes longer than most tests.
type stage struct {
	*place
	version      string
	ttl          time.Duration
	java, golang *party
}

// other returns the other process.
func (s *stage) other(q *party) *party {
	if q.process == s.java.process {
		return s.golang
	}
	return s.java
}

func newStage(t *testing.T, version string, ttl time.Duration) *stage {
	t.Helper()
	p := single(t)
	return &stage{p, version, ttl, p.java(t, version, ttl), p.golang(t, ttl)}
}

// run runs a part of the test on the stage.
func (s *stage) run(t *testing.T, name string, test func(*testing.T, *stage)) {
	t.Run(name, func(t *testing.T) {
		part := *s
		part.java, part.golang = s.java.forTest(t), s.golang.forTest(t)
		test(t, &part)
	})
}

// each runs a test on every version of Redisson.
func each(t *testing.T, test func(t *testing.T, version string)) {
	t.Helper()
	t.Parallel()
	for _, version := range versions(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			test(t, version)
		})
	}
}

// TestShared is about one lock that both sides use, Mutex here and RLock there.
func TestShared(t *testing.T) {
	each(t, func(t *testing.T, version string) {
		s := newStage(t, version, medium)
		s.run(t, "reentry", reentry)
		s.run(t, "reentry of the other side", reentryOfOtherSide)
		s.run(t, "names", names)
		s.run(t, "modeless", modeless)
		s.run(t, "tokens", tokens)
		s.run(t, "counter", counter)
		s.run(t, "several", several)
		s.run(t, "opposite orders", oppositeOrders)
		s.run(t, "one of several lost", oneOfSeveralLost)
		s.run(t, "force", force)
		s.run(t, "force kinds", forceKinds)
	})
}

// TestEnds is about locks whose holders are gone, or hold on, and of all kinds.
func TestEnds(t *testing.T) {
	each(t, func(t *testing.T, version string) {
		s := newStage(t, version, short)
		s.run(t, "kinds", kinds)
		s.run(t, "forced stays free", forcedStaysFree)
		s.run(t, "paused", paused)
		s.run(t, "crash", crash)
	})
}

// lock are the arguments for a Mutex, which is an RLock in Java.
func lock(name string) []any { return as("lock", name) }

// as are the arguments for a lock of that kind.
func as(kind, name string) []any { return []any{"kind", kind, "name", name} }
