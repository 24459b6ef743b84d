package main

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// codeOrdered stands beside the codes of refusals.
const codeOrdered = "ordered"

// tally is what the clients saw.
type tally struct {
	mu       sync.Mutex
	codes    map[string]int
	all      []time.Duration // latencies of all requests
	ordered  []time.Duration // and of those that became orders
	failures int             // requests without an answer of the shop's own
	failure  error           // the first of them
	took     time.Duration
}

func newTally() *tally { return &tally{codes: make(map[string]int)} }

func (t *tally) add(code string, err error, latency time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, latency)
	switch code {
	case codeOrdered:
		t.ordered = append(t.ordered, latency)
		t.codes[code]++
	case codeInProgress, codeAlreadyOrdered, codeSoldOut, codeBusy, codeStale:
		t.codes[code]++
	default:
		if err == nil {
			err = fmt.Errorf("the shop answered %q", code)
		}
		if t.failure == nil {
			t.failure = err
		}
		t.failures++
	}
}

// quantile returns the value below which the share q of the values lies, rounded for reading; 0 if there are
// none.
func quantile(values []time.Duration, q float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)].Round(100 * time.Microsecond)
}
