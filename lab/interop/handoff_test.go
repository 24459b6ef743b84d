//go:build unix

package interop_test

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestHandoff passes a lock to and fro between two processes, of which the other always waits. A Java process that was
// not woken would wait for the TTL, a Go process for a second or two. It is not parallel, because it measures.
func TestHandoff(t *testing.T) {
	all, rounds := versions(t), 12
	if *contest >= 30*time.Second {
		rounds = 40 // then somebody wants figures
	}
	for name, begin := range places {
		t.Run(name, func(t *testing.T) {
			p := begin(t)
			golang := p.golang(t, long)
			for _, version := range all {
				java := p.java(t, version, long)
				passOn(t, p, java, golang, rounds/4) // a JVM that is warm, scripts that are loaded
				toGo, toJava := passOn(t, p, java, golang, rounds)
				t.Logf("Redisson %s to Go: %s", version, spread(toGo))
				t.Logf("Go to Redisson %s: %s", version, spread(toJava))
				if median(toGo) > long/3 || median(toJava) > long/3 {
					t.Error("waiters are not woken")
				}
			}
		})
	}
}

// passOn returns how long the lock took from a to b, and back.
func passOn(t *testing.T, p *place, a, b *party, rounds int) (there, back []time.Duration) {
	t.Helper()
	a.must("x", "lock", lock("name")...)
	for range rounds {
		there = append(there, pass(t, p, a, b))
		back = append(back, pass(t, p, b, a))
	}
	a.must("x", "unlock", lock("name")...)
	return there, back
}

// pass lets one process unlock while the other waits, and returns the time from before the one until after the other.
func pass(t *testing.T, p *place, from, to *party) time.Duration {
	t.Helper()
	waiting := to.begin("x", "lock", lock("name")...)
	p.awaitListener(t, "name")
	// The last one who waited may still be subscribed; the new one then only has to get as far.
	select {
	case a := <-waiting:
		t.Fatalf("%s: %s, though %s holds the lock", to.name, a.Value, from.name)
	case <-time.After(20*time.Millisecond + rand.N(10*time.Millisecond)):
	}
	released := from.must("x", "unlock", lock("name")...)
	entered := to.answer(waiting, within)
	if entered.Failed {
		t.Fatalf("%s: %s", to.name, entered.Value)
	}
	return since(released, entered)
}
