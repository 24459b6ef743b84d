package asynqlock

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/tests/testkit"
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
	testkit.Eventually(t, 30*time.Second, "the relays to end", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.keys) == 0
	})
}

// TestRelayIsOwedEachBeginning: if several tasks may run at a time, one that begins does not end the calls for another
// run that has ended.
func TestRelayIsOwedEachBeginning(t *testing.T) {
	t.Parallel()
	r := relays{interval: time.Millisecond, probe: time.Hour}
	var calls atomic.Int64
	again := func(context.Context, int) []string { return []string{strconv.FormatInt(calls.Add(1), 10)} }
	for _, task := range []string{"a", "b", "c"} {
		r.begin("key", task, 3, again)
	}
	r.end("key", 3, true, again)
	r.end("key", 3, true, again)
	r.begin("key", "d", 3, again)
	seen := calls.Load()
	testkit.Eventually(t, 30*time.Second, "further calls", func() bool { return calls.Load() > seen+1 })
	r.begin("key", "e", 3, again)
	for range 3 {
		r.end("key", 3, false, again)
	}
	awaitNoRelay(t, &r)
}

// TestRelayProbes: while tasks run that leave permits to others, one task is called from time to time. If it runs, so
// may further ones, which are called at once.
func TestRelayProbes(t *testing.T) {
	t.Parallel()
	r := relays{interval: time.Hour, probe: time.Millisecond}
	called, over := make(chan int), make(chan struct{})
	again := func(ctx context.Context, most int) []string {
		select {
		case called <- most:
		case <-over:
		}
		return []string{"probe"}
	}
	r.begin("key", "first", 3, again)
	for range 3 {
		if most := <-called; most != 1 {
			t.Fatalf("a probe calls %d tasks", most)
		}
	}
	testkit.Eventually(t, 30*time.Second, "the probe to be known", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.keys["key"].probed) == 1
	})
	r.begin("key", "probe", 3, again)
	for most := 1; most == 1; { // a probe may be under way
		most = <-called
	}
	close(over)
	for range 2 {
		r.end("key", 3, false, again)
	}
	awaitNoRelay(t, &r)
}
