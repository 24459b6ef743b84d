package main

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// watch counts what the lock on the stock does, and the guard of receipts, in all replicas together.
type watch struct {
	mu      sync.Mutex
	granted int
	waited  int             // of them not at the first request
	waits   []time.Duration // of all grants
	held    []time.Duration // from each grant to its release
	lost    int             // leases, of either lock

	firstGrant, lastGrant time.Time

	replayed int // tasks acknowledged because their receipt was sent
}

func (w *watch) hooks() core.Hooks {
	return core.Hooks{
		AcquireEnd: func(_ context.Context, end core.AcquireEnd) {
			if end.Err != nil || !isStock(end.Name) {
				return
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.granted++
			w.lastGrant = time.Now()
			if w.granted == 1 {
				w.firstGrant = w.lastGrant
			}
			if end.Asked > 1 {
				w.waited++
			}
			w.waits = append(w.waits, end.Waited)
		},
		ReleaseEnd: func(_ context.Context, end core.ReleaseEnd) {
			if end.Err != nil || !isStock(end.Name) {
				return
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.held = append(w.held, end.Held)
		},
		Lost: func(context.Context, core.Lost) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.lost++
		},
		NotRun: func(_ context.Context, n core.NotRun) {
			if n.Place != "task" || n.Reason != core.ReasonReplayed {
				return
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.replayed++
		},
	}
}

// isStock reports whether a lock is the one on the stock.
func isStock(name string) bool { return strings.HasPrefix(name, "stock:") }

// duplicates returns how many tasks were acknowledged because their receipt was sent.
func (w *watch) duplicates() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.replayed
}
