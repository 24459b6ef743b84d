package main

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
)

// watch counts what the lock on the stock does, and the guard of receipts, in all replicas together.
type watch struct {
	mu      sync.Mutex
	granted int
	waited  int             // of them not at the first request
	waits   []time.Duration // of all grants
	lost    int             // leases, of either lock

	replayed int // tasks acknowledged because their receipt was sent
}

func (w *watch) hooks() core.Hooks {
	return core.Hooks{
		AcquireEnd: func(_ context.Context, end core.AcquireEnd) {
			if end.Err != nil || !strings.HasPrefix(end.Name, "stock:") {
				return
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.granted++
			if end.Asked > 1 {
				w.waited++
			}
			w.waits = append(w.waits, end.Waited)
		},
		Lost: func(core.Lost) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.lost++
		},
	}
}

func (w *watch) taskHooks() asynqlock.Hooks {
	return asynqlock.Hooks{Replayed: func(context.Context, asynqlock.Replayed) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.replayed++
	}}
}
