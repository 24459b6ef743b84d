//go:build unix

package interop_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/lab/interop"
)

// mixtures are kinds of Redisson that contend for one name with all of holdfast. Its read-write lock takes a lock of
// its other kinds for a free one, so they do not belong together. Its fair lock is let in so seldom that others would
// leave nothing to it.
var mixtures = map[string][]string{"plain": {"lock", "fenced", "spin"}, "fair": {"fair"}, "reads": {"read", "write"}}

// TestMixture lets all kinds of both sides contend for one name.
func TestMixture(t *testing.T) {
	t.Parallel()
	version := versions(t)[0]
	for name, kinds := range mixtures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := single(t)
			java, golang := p.java(t, version, short), p.golang(t, short)
			inJava := beginContests(java, kinds, name, *contest/2)
			inGo := beginContests(golang, goKinds, name, *contest/2)
			mustEnd(t, java, inJava)
			mustEnd(t, golang, inGo)
			holds := p.journal(t, name)
			p.mustNotMeet(t, name, holds)
			mustGrow(t, holds)
			count := make(map[string]int)
			for _, h := range holds {
				count[h.who]++
			}
			t.Logf("%d holds: %v", len(holds), count)
			mustAllEnter(t, name, kinds, java, golang)
		})
	}
}

// TestMixtureCrash kills one process of each side in the middle of that. What they leave keeps nobody out for a long time,
// whatever state it is.
func TestMixtureCrash(t *testing.T) {
	t.Parallel()
	version := versions(t)[0]
	for name, kinds := range mixtures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := single(t)
			// For so long a dead waiter blocks the other fair locks of Redisson; by default it is five minutes.
			fairly := []any{"fairwait", short.Milliseconds()}
			java, golang := p.java(t, version, short, fairly...), p.golang(t, short)
			for round := range 1 + int(*contest/(30*time.Second)) {
				dying := []*party{p.java(t, version, short, fairly...), p.golang(t, short)}
				inJava := beginContests(java, kinds, name, 2*short)
				inGo := beginContests(golang, goKinds, name, 2*short)
				beginContests(dying[0], kinds, name, time.Hour)
				beginContests(dying[1], goKinds, name, time.Hour)
				time.Sleep(short + time.Duration(round)*100*time.Millisecond)
				for _, q := range dying {
					q.kill()
				}
				mustEnd(t, java, inJava)
				mustEnd(t, golang, inGo)
				mustAllEnter(t, name, kinds, java, golang)
			}
		})
	}
}

// beginContests lets two threads of each kind contend.
func beginContests(q *party, kinds []string, name string, length time.Duration) (all []<-chan interop.Answer) {
	q.t.Helper()
	for _, kind := range kinds {
		for i := range 2 {
			all = append(all, q.begin(fmt.Sprintf("%s%d", kind, i), "contend", append(as(kind, name),
				"party", q.name, "for", length.Milliseconds(), "hold", 2000, "think", 60_000)...))
		}
	}
	return all
}

func mustEnd(t *testing.T, q *party, contests []<-chan interop.Answer) {
	t.Helper()
	for _, answered := range contests {
		if a := q.answer(answered, *contest+2*within); a.Failed {
			t.Errorf("%s: %s", q.name, a.Value)
		}
	}
}

// mustAllEnter checks that no state is left which keeps somebody out.
func mustAllEnter(t *testing.T, name string, kinds []string, java, golang *party) {
	t.Helper()
	for _, kind := range kinds {
		java.must("last", "lock", as(kind, name)...)
		java.must("last", "unlock", as(kind, name)...)
	}
	for _, kind := range goKinds {
		golang.must("last", "lock", as(kind, name)...)
		golang.must("last", "unlock", as(kind, name)...)
	}
}
