// Package xrate puts the semaphore of asynq's x/rate beside others. It takes the ID of a task from the context that asynq
// gives to a handler, so the callers here are tasks that a real asynq server runs.
package xrate

import (
	"context"
	"fmt"

	"github.com/hibiken/asynq"
)

// Tasks are running tasks of asynq. Each is a caller.
type Tasks struct {
	server   *asynq.Server
	done     chan struct{} // closed to let the handlers return
	contexts []context.Context
}

// StartTasks runs so many tasks until Close, on a Redis of their own, whose load does not count.
func StartTasks(addr string, n int) (*Tasks, error) {
	opt := asynq.RedisClientOpt{Addr: addr}
	client := asynq.NewClient(opt)
	defer client.Close()
	for range n {
		if _, err := client.Enqueue(asynq.NewTask("caller", nil)); err != nil {
			return nil, fmt.Errorf("xrate: %w", err)
		}
	}
	t := &Tasks{done: make(chan struct{})}
	started := make(chan context.Context, n)
	t.server = asynq.NewServer(opt, asynq.Config{Concurrency: n, LogLevel: asynq.FatalLevel})
	err := t.server.Start(asynq.HandlerFunc(func(ctx context.Context, _ *asynq.Task) error {
		started <- ctx
		<-t.done
		return nil
	}))
	if err != nil {
		return nil, fmt.Errorf("xrate: %w", err)
	}
	for range n {
		t.contexts = append(t.contexts, <-started)
	}
	return t, nil
}

// Close ends the tasks.
func (t *Tasks) Close() {
	close(t.done)
	t.server.Shutdown()
}
