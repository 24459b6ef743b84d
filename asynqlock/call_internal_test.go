package asynqlock

import (
	"context"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestNear: a task waits in its worker if it is one of the first of its line, or if it was called from further back.
func TestNear(t *testing.T) {
	t.Parallel()
	l := newLine(testkit.Start(t).Client())
	v := &visit{guard: &guard{config: config{line: l}}, ctx: t.Context(), hash: "key", limit: 1}
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
