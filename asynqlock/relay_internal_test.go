package asynqlock

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"

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

// TestNear: a task waits in its worker if it is one of the first of its line, or if it was called from further back.
func TestNear(t *testing.T) {
	t.Parallel()
	l := newLine(testkit.Start(t).Client())
	v := &visit{guard: &guard{config: config{line: l}}, ctx: t.Context(), limit: 1}
	v.ask.KeyHash = "key"
	v.task.Queue, v.task.ID = "default", "task"
	if v.spot.ahead = 0; !l.near(v) {
		t.Error("the first one does not wait")
	}
	if v.spot.ahead = 1000; l.near(v) {
		t.Error("one far behind waits")
	}
	l.pace.add("key", time.Hour)
	if v.spot.ahead = 4; l.near(v) {
		t.Error("one behind tasks that take an hour waits")
	}
	if v.limit = 5; !l.near(v) {
		t.Error("the fifth of a line whose tasks run five at a time does not wait")
	}
	v.limit, v.spot.ahead = 1, 1000
	l.pace.keys = nil
	l.pace.add("key", time.Millisecond)
	if l.called.add(member("default", "task")); !l.near(v) {
		t.Error("one that was called does not wait")
	}
}

// TestCallOfARunningTask: a task that a guard has just sent back is looked at again, since asynq may not have deferred
// it yet. Any other one that is with a worker is not.
func TestCallOfARunningTask(t *testing.T) {
	t.Parallel()
	redis := testkit.Start(t)
	l := newLine(redis.Client())
	conn := asynq.RedisClientOpt{Network: redis.Network(), Addr: redis.Addr()}
	client := asynq.NewClient(conn)
	defer client.Close()
	if _, err := client.Enqueue(asynq.NewTask("type", nil), asynq.TaskID("task")); err != nil {
		t.Fatal(err)
	}
	free, runs := make(chan struct{}), make(chan struct{})
	server := asynq.NewServer(conn, asynq.Config{LogLevel: asynq.FatalLevel, TaskCheckInterval: 10 * time.Millisecond})
	err := server.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		close(runs)
		<-free
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Shutdown()
	defer close(free)
	<-runs
	m := member("default", "task")
	l.bounced.add(m)
	if got := l.call(m); got != calledTooSoon {
		t.Errorf("just sent back: %v", got)
	}
	l.bounced.remove(m)
	if got := l.call(m); got != calledElsewhere {
		t.Errorf("running: %v", got)
	}
}
