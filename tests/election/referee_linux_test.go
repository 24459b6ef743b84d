package election_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// referee judges an election by what its candidates say.
type referee struct {
	mu    sync.Mutex
	terms map[int64]*reigned
	seen  map[string][]ballot // by observer
	late  time.Duration       // the longest time from when a process continued after a stop until its leader stopped
}

// reigned is one term: when its leader was seen first and last with a valid context.
type reigned struct {
	term        int64
	value       string
	first, last time.Duration
	late        time.Duration // when its context was first seen to outlive it; 0 if it was not
}

func newReferee() *referee {
	return &referee{terms: make(map[int64]*reigned), seen: make(map[string][]ballot)}
}

// hear takes a line of a candidate.
func (r *referee) hear(observer string, line []byte) {
	var b ballot
	if json.Unmarshal(line, &b) != nil {
		return // half a line of a process that was killed
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch b.Kind {
	case ledKind:
		term := r.terms[b.Term]
		if term == nil {
			term = &reigned{term: b.Term, value: b.Value, first: b.At}
			r.terms[b.Term] = term
		}
		term.last = b.At
	case lateKind:
		if term := r.terms[b.Term]; term != nil && term.late == 0 {
			term.late = b.At
		}
	case seenKind, vacantKind:
		r.seen[observer] = append(r.seen[observer], b)
	case endedKind:
		if term := r.terms[b.Term]; term != nil && term.late != 0 {
			r.late = max(r.late, b.At-term.late)
		}
	}
}

// newest returns the greatest term whose leader has said that it leads; nil before the first.
func (r *referee) newest() *reigned {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.terms) == 0 {
		return nil
	}
	found := *r.terms[slices.Max(slices.Collect(maps.Keys(r.terms)))]
	return &found
}

// byTime returns the terms in the order in which they began.
func (r *referee) byTime() []*reigned {
	return slices.SortedFunc(maps.Values(r.terms), func(a, b *reigned) int { return cmp.Compare(a.first, b.first) })
}

// violations says which rules were broken. No two leaders have a valid context at once, terms rise, no vacancy is longer
// than most, and each observer sees terms that were won, in their order, with the value of the leader.
func (r *referee) violations(most time.Duration) (all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	terms := r.byTime()
	for i := 1; i < len(terms); i++ {
		before, after := terms[i-1], terms[i]
		switch vacancy := after.first - before.last; {
		case vacancy <= 0:
			all = append(all, fmt.Sprintf("terms %d and %d led at once for %v", before.term, after.term, -vacancy))
		case vacancy > most:
			all = append(all, fmt.Sprintf("nobody led for %v before term %d", vacancy, after.term))
		}
		if after.term <= before.term {
			all = append(all, fmt.Sprintf("term %d came after %d", after.term, before.term))
		}
	}
	for observer, seen := range r.seen {
		last := int64(0)
		for _, b := range seen {
			if b.Term < last {
				all = append(all, fmt.Sprintf("observer %s saw term %d after %d", observer, b.Term, last))
			}
			last = b.Term
			won := r.terms[b.Term]
			if b.Kind == seenKind && won != nil && b.Value != "" && b.Value != won.value {
				all = append(all, fmt.Sprintf("observer %s saw %q lead term %d, which was %q", observer, b.Value, b.Term, won.value))
			}
		}
	}
	return all
}

// vacancyBefore returns how long the vacancy before a term was.
func (r *referee) vacancyBefore(term int64) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	terms := r.byTime()
	for i := 1; i < len(terms); i++ {
		if terms[i].term == term {
			return terms[i].first - terms[i-1].last
		}
	}
	return 0
}

// observed returns how many changes of leadership observers were told of, and how many they could have been told of: all
// between the first and the last term that each of them saw.
func (r *referee) observed() (told, of int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, seen := range r.seen {
		terms := make(map[int64]bool)
		for _, b := range seen {
			if b.Kind == seenKind {
				terms[b.Term] = true
			}
		}
		if len(terms) == 0 {
			continue
		}
		all := slices.Collect(maps.Keys(terms))
		first, last := slices.Min(all), slices.Max(all)
		for term := range r.terms {
			if term >= first && term <= last {
				of++
				if terms[term] {
					told++
				}
			}
		}
	}
	return told, of
}
