//go:build unix

package interop_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/lab/interop"
)

// TestContention lets two processes of each side contend for one lock, in all deployments, one after the other because
// each of them takes the whole machine; on one server for the whole time, on the others for half of it. The processes
// in Java have different versions of Redisson, if there are several.
func TestContention(t *testing.T) {
	all := versions(t)
	for _, name := range []string{"single", "sentinel", "cluster"} {
		t.Run(name, func(t *testing.T) {
			p := places[name](t)
			var parties []*party
			for i := range 2 {
				parties = append(parties, p.java(t, all[i%len(all)], long), p.golang(t, long))
			}
			length := *contest
			if name != "single" {
				length /= 2
			}
			contend(t, parties, 4, length, lock("name"))
			holds := p.journal(t, "name")
			p.mustNotMeet(t, "name", holds)
			mustGrow(t, holds)
			mustAllHold(t, parties, holds)
			for way, times := range gaps(holds) {
				t.Logf("%s: %s", way, spread(times))
			}
		})
	}
}

// TestRefereeSees: where the two sides do not lock the same name, holds overlap, and the test would say so.
func TestRefereeSees(t *testing.T) {
	t.Parallel()
	version := versions(t)[0]
	p := single(t)
	java, golang := p.java(t, version, long), p.golang(t, long)
	contend(t, []*party{java}, 1, time.Second, lock("name"))
	alone := p.journal(t, "name")
	if len(overlaps(alone)) > 0 || len(alone) == 0 {
		t.Errorf("one thread: %d overlaps in %d holds", len(overlaps(alone)), len(alone))
	}
	var ended []<-chan interop.Answer
	for _, q := range []*party{java, golang} {
		ended = append(ended, q.begin("0", "contend", "kind", "lock", "name", q.name, "resource", "name", "party", q.name,
			"for", 3000, "hold", 2000, "think", 0))
	}
	for _, answered := range ended {
		java.answer(answered, within)
	}
	if len(overlaps(p.journal(t, "name"))) == 0 || len(p.met(t, "name")) == 0 {
		t.Error("two locks, and no overlap was seen")
	}
}

// contend lets so many threads of each process lock and unlock for that time, and returns when all have ended.
func contend(t *testing.T, parties []*party, threads int, length time.Duration, what ...[]any) {
	t.Helper()
	mustFinish(t, beginToContend(parties, threads, length, what...), length)
}

// contender is a thread that contends.
type contender struct {
	*party
	answered <-chan interop.Answer
}

// beginToContend lets the threads of each process lock, in turn, what should be locked.
func beginToContend(parties []*party, threads int, length time.Duration, what ...[]any) (all []contender) {
	for i, q := range parties {
		for thread := range threads {
			arguments := append([]any{
				"party", label(q, i), "for", length.Milliseconds(), "hold", 2000, "think", 8000,
			}, what[thread%len(what)]...)
			all = append(all, contender{q, q.begin(strconv.Itoa(thread), "contend", arguments...)})
		}
	}
	return all
}

func mustFinish(t *testing.T, all []contender, length time.Duration) {
	t.Helper()
	for _, c := range all {
		if a := c.answer(c.answered, length+within); a.Failed {
			t.Errorf("%s: %s", c.name, a.Value)
		}
	}
}

func label(q *party, i int) string { return fmt.Sprintf("%s-%d", q.name, i) }

// mustAllHold checks that every process had the lock.
func mustAllHold(t *testing.T, parties []*party, holds []held) {
	t.Helper()
	count := make(map[string]int)
	for _, h := range holds {
		count[h.party()]++
	}
	for i, q := range parties {
		if count[label(q, i)] == 0 {
			t.Errorf("%s never had the lock", label(q, i))
		}
	}
	t.Logf("%d holds: %v", len(holds), count)
}
