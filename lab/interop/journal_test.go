//go:build unix

package interop_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/lab/interop"
)

// held is one hold of a lock, in microseconds.
type held struct {
	who, how      string
	entered, left int64 // by the clock of Redis
	began, ended  int64 // by the machine's
	token         int64
}

// party is the process that held.
func (h held) party() string {
	name, _, _ := strings.Cut(h.who, ":")
	return name
}

// side is go or java.
func (h held) side() string {
	name, _, _ := strings.Cut(h.who, "-")
	return name
}

// shares reports whether both hold it as readers of one library.
func (h held) shares(other held) bool { return h.how != "exclusive" && h.how == other.how }

// journal returns the holds of a lock by when they began.
func (p *place) journal(t *testing.T, name string) (all []held) {
	t.Helper()
	lines, err := p.referee.Client().LRange(t.Context(), interop.Journal(name), 0, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		var h held
		_, err := fmt.Sscan(line, &h.who, &h.how, &h.entered, &h.left, &h.began, &h.ended, &h.token)
		if err != nil {
			t.Fatalf("journal: %q: %v", line, err)
		}
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b held) int { return cmp.Compare(a.entered, b.entered) })
	return all
}

// mustNotMeet checks that no two held a lock at the same time who must not: as the referee saw it, by the clock of
// Redis, and by the machine's.
func (p *place) mustNotMeet(t *testing.T, name string, all []held) {
	t.Helper()
	for _, met := range p.met(t, name) {
		t.Errorf("both inside: %s", met)
	}
	for _, pair := range overlaps(all) {
		t.Errorf("overlap: %+v, %+v", pair[0], pair[1])
	}
}

// met returns what the referee saw at once.
func (p *place) met(t *testing.T, name string) []string {
	t.Helper()
	met, err := p.referee.Client().LRange(t.Context(), interop.Met(name), 0, 9).Result()
	if err != nil {
		t.Fatal(err)
	}
	return met
}

// overlaps returns at most ten of the holds that were at the same time, by one of the clocks.
func overlaps(all []held) (found [][2]held) {
	for _, clock := range []func(held) (int64, int64){
		func(h held) (int64, int64) { return h.entered, h.left },
		func(h held) (int64, int64) { return h.began, h.ended },
	} {
		sorted := slices.SortedFunc(slices.Values(all), func(a, b held) int {
			first, _ := clock(a)
			second, _ := clock(b)
			return cmp.Compare(first, second)
		})
		for i, h := range sorted {
			_, end := clock(h)
			for _, next := range sorted[i+1:] {
				begin, _ := clock(next)
				if begin >= end || len(found) == 10 {
					break
				}
				if !h.shares(next) {
					found = append(found, [2]held{h, next})
				}
			}
		}
	}
	return found
}

// mustGrow checks that tokens of holdfast grow, whoever held the lock between. Those of readers who came in together
// are in no order.
func mustGrow(t *testing.T, all []held) {
	t.Helper()
	var last held
	for _, h := range all {
		if h.token == 0 {
			continue
		}
		if h.token <= last.token && !h.shares(last) {
			t.Errorf("token %d came after %d", h.token, last.token)
		}
		last = h
	}
}

// gaps are the times from the end of one hold to the begin of the next, by "<side> to <side>", where the lock went to
// another process.
func gaps(all []held) map[string][]time.Duration {
	found := make(map[string][]time.Duration)
	for i, next := range all {
		if i > 0 && all[i-1].party() != next.party() {
			h := all[i-1]
			way := h.side() + " to " + next.side()
			found[way] = append(found[way], time.Duration(next.entered-h.left)*time.Microsecond)
		}
	}
	return found
}

// spread tells how long something took.
func spread(times []time.Duration) string {
	if len(times) == 0 {
		return "never"
	}
	sorted := slices.Sorted(slices.Values(times))
	at := func(percent int) time.Duration { return sorted[(len(sorted)-1)*percent/100] }
	return fmt.Sprintf("%d times, p50 %v, p99 %v, longest %v", len(sorted), at(50), at(99), at(100))
}

func median(times []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[len(sorted)/2]
}
