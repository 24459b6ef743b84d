package check

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/holdfast-go/holdfast/lab/faults/history"
	"github.com/holdfast-go/holdfast/lab/faults/worker"
)

const (
	// patience is how long after a heal, beyond the TTL, a lock that nobody holds any more may stay taken.
	patience = 2 * time.Second
	// deadWaiter is how much longer that may be where waiters stand in a line: so long does one keep its place that has
	// died, or a grant that it did not live to take.
	deadWaiter = 6 * time.Second
)

// liveness: once nothing is broken any more, every lock that is asked for and that nobody holds is granted.
func (r *Report) liveness(v *view) {
	for _, e := range v.events {
		if e.Kind != history.Calm && e.Kind != history.Final {
			continue
		}
		for name, leases := range v.byName {
			limit := v.ttl + patience
			if v.lined[name] {
				limit += deadWaiter
			}
			next := sort.Search(len(leases), func(i int) bool { return leases[i].from > e.At })
			free := freeFrom(leases[:next], e.At)
			end := free + int64(limit)
			if !v.askedFor(name, e.At, e.At+int64(v.ttl), end) || !v.quiet(e.At, end) {
				continue
			}
			if next < len(leases) {
				r.Freed.add(time.Duration(max(0, leases[next].from-free)))
			}
			if next == len(leases) || leases[next].from > end {
				r.violated("liveness: %q was not granted within %v of %s", name, limit, clock(free))
			}
		}
	}
}

// freeFrom returns when the last of those ends who hold a lock at that time, and know it.
func freeFrom(leases []*lease, at int64) int64 {
	free := at
	for _, l := range leases {
		free = max(free, l.to())
	}
	return free
}

// askedFor tells whether a call begins in that time to ask for a lock, and for no other one with it, and does not give up before
// the end.
func (v *view) askedFor(name string, from, to, end int64) bool {
	return slices.ContainsFunc(v.asked[name], func(r *request) bool { return from <= r.from && r.from <= to && r.to >= end })
}

// quiet tells whether no fault begins or continues in that time, and the run lasts as long.
func (v *view) quiet(from, to int64) bool {
	for _, w := range v.faults {
		if w.from <= to && w.to > from {
			return false
		}
	}
	return v.events[len(v.events)-1].At >= to
}

// punctuality measures how late calls return and losses are told, except while processes could not run. A handler behind a
// guard is notified of a loss without the time until which its lease was valid.
func (r *Report) punctuality(v *view) {
	for _, e := range v.events {
		switch {
		case e.Kind == history.Return && e.Deadline > 0 && e.Err != "" && e.At > e.Deadline:
			if !v.disturbed(e.Deadline, e.At) {
				r.Overdue.add(time.Duration(e.At - e.Deadline))
			}
		case e.Kind == history.End && e.Err == worker.Expired && e.Until > 0 && !v.disturbed(e.Until, e.At):
			r.Told.add(time.Duration(e.At - e.Until))
		}
	}
}

// Spread is a distribution of times.
type Spread struct{ All []time.Duration }

func (s *Spread) add(d time.Duration) { s.All = append(s.All, d) }

// Add adds the observations of another one.
func (s *Spread) Add(other Spread) { s.All = append(s.All, other.All...) }

// String tells the median, the 99th of a hundred, and the greatest.
func (s Spread) String() string {
	if len(s.All) == 0 {
		return "none"
	}
	slices.Sort(s.All)
	at := func(share float64) time.Duration {
		return s.All[int(share*float64(len(s.All)-1))].Round(100 * time.Microsecond)
	}
	return fmt.Sprintf("%d, median %v, 99%% within %v, at most %v", len(s.All), at(0.5), at(0.99), at(1))
}
