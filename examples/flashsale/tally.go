package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// What clients note beside the codes of refusals.
const (
	codePriced    = "priced"
	codeOrdered   = "ordered"
	codePaid      = "paid"
	codeReplayed  = "replayed" // the receipt of an earlier request
	codeBrokenOff = "broken-off"
)

// expected are the answers that are no errors.
var expected = []string{
	codePriced, codeOrdered, codePaid, codeReplayed, codeBrokenOff, codeSoldOut, codeBusy, codeStale,
	httplock.CodeLockConflict, httplock.CodeRequestInProgress, httplock.CodeAlreadyCompleted,
}

// tally is what the clients saw.
type tally struct {
	mu        sync.Mutex
	codes     map[string]int
	all       []time.Duration // latencies of all requests
	ordered   []time.Duration // and of those that became orders
	payments  int
	differing int   // payments whose receipts were not all the same
	failures  int   // requests without an expected answer
	failure   error // the first of them
	took      time.Duration
}

func newTally() *tally { return &tally{codes: make(map[string]int)} }

func (t *tally) add(code string, err error, latency time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, latency)
	if code == codeOrdered {
		t.ordered = append(t.ordered, latency)
	}
	if err == nil && slices.Contains(expected, code) {
		t.codes[code]++
		return
	}
	if err == nil {
		err = fmt.Errorf("the shop answered %q", code)
	}
	if t.failure == nil {
		t.failure = err
	}
	t.failures++
}

// payment compares what a client got for one payment.
func (t *tally) payment(answers []answer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.payments++
	receipts := map[string]bool{}
	for _, a := range answers {
		if a.code == codePaid || a.code == codeReplayed {
			receipts[a.body] = true
		}
	}
	if len(receipts) != 1 {
		t.differing++
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
