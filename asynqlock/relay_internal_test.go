package asynqlock

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// TestRelayGoesOnWhileItReachesTasks: the calls of a line go on for as long as they reach further tasks, and then end.
func TestRelayGoesOnWhileItReachesTasks(t *testing.T) {
	t.Parallel()
	const tasks = 4 * relayLimit
	r := relays{interval: time.Millisecond}
	var calls atomic.Int64
	r.end("key", 1, true, func(context.Context, int) []string {
		return []string{"first", strconv.FormatInt(min(calls.Add(1), tasks), 10)}
	})
	awaitNoRelay(t, &r)
	if n := calls.Load(); n != tasks+relayLimit {
		t.Errorf("%d calls, want %d that reach a task and %d that do not", n, tasks, relayLimit)
	}
}

// TestRelayIsStopped: a relay that is stopped while it calls does not call again.
func TestRelayIsStopped(t *testing.T) {
	t.Parallel()
	r := relays{interval: time.Millisecond}
	var calls atomic.Int64
	stopped := make(chan struct{})
	r.end("key", 1, true, func(context.Context, int) []string {
		if calls.Add(1) == 1 {
			r.begin("key", "task", 1, nil)
			close(stopped)
		}
		return nil
	})
	<-stopped
	r.end("other", 1, true, func(context.Context, int) []string { return nil }) // takes as long as the first one would have taken
	awaitNoRelay(t, &r)
	if n := calls.Load(); n != 1 {
		t.Errorf("%d calls", n)
	}
}

func awaitNoRelay(t *testing.T, r *relays) {
	t.Helper()
	redistest.Eventually(t, 30*time.Second, "the relays to end", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.keys) == 0
	})
}
