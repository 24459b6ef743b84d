//go:build unix

package interop_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/interop"
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

// mustNotMeet checks that no two held a lock at the same time: as the referee saw it, by the clock of Redis, and by the
// machine's. A clock that stood for a microsecond lets a hold end and the next begin at the same time.
func (p *place) mustNotMeet(t *testing.T, name string, all []held) {
	t.Helper()
	for _, met := range p.referee.Client().LRange(t.Context(), interop.Met(name), 0, 9).Val() {
		t.Errorf("both inside: %s", met)
	}
	overlaps := 0
	for i, h := range all {
		for _, next := range all[i+1:] {
			if next.entered >= h.left {
				break
			}
			if !h.shares(next) {
				overlaps++
				t.Logf("overlap: %+v, %+v", h, next)
			}
		}
	}
	byMachine := slices.SortedFunc(slices.Values(all), func(a, b held) int { return cmp.Compare(a.began, b.began) })
	for i, h := range byMachine {
		for _, next := range byMachine[i+1:] {
			if next.began >= h.ended {
				break
			}
			if !h.shares(next) {
				overlaps++
				t.Logf("overlap by the machine's clock: %+v, %+v", h, next)
			}
		}
	}
	if overlaps > 0 {
		t.Errorf("%d overlaps in %d holds", overlaps, len(all))
	}
}

// mustGrow checks that tokens of holdfast grow, whoever held the lock between.
func mustGrow(t *testing.T, all []held) {
	t.Helper()
	last := int64(0)
	for _, h := range all {
		if h.token == 0 {
			continue
		}
		if h.token <= last {
			t.Errorf("token %d came after %d", h.token, last)
		}
		last = h.token
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
