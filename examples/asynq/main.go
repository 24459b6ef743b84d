// Asynq enqueues the receipt of each order twice, and each is sent once.
//
// Two servers in one program stand for two processes: they share nothing but Redis. Run it from the root of the
// repository. With REDIS_URL, its records stay for a minute.
//
//	go run ./examples/asynq
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/examples/internal/example"
)

const (
	queue  = "holdfast-example"
	orders = 3
)

func main() { example.Main(run) }

// run enqueues the tasks, and starts two servers until they are done.
func run(ctx context.Context, out io.Writer, rdb *redis.Client) error {
	sale := time.Now().Format("150405.000") // so that another run sells something else
	enqueued, err := produce(ctx, rdb, sale)
	if err != nil {
		return err
	}
	for i := range 2 {
		s, err := start(rdb, fmt.Sprintf("server-%d", i+1), out, enqueued)
		if err != nil {
			return err
		}
		defer s.stop(ctx)
	}
	return await(ctx, rdb)
}

// produce enqueues the receipt of each order twice, as a producer does that has lost the reply and tries again. It
// returns which task is for which order, by task ID.
func produce(ctx context.Context, rdb *redis.Client, sale string) (map[string]string, error) {
	client, enqueued := asynq.NewClientFromRedisClient(rdb), make(map[string]string)
	for order := range orders {
		id := fmt.Sprintf("%s-%d", sale, order+1)
		payload := fmt.Appendf(nil, `{"order":"%s"}`, id)
		for range 2 {
			task, err := client.EnqueueContext(ctx, asynq.NewTask("receipt:send", payload), asynq.Queue(queue))
			if err != nil {
				return nil, err
			}
			enqueued[task.ID] = id
		}
	}
	return enqueued, nil
}

// server is a process that runs tasks.
type server struct {
	asynq *asynq.Server
	locks *core.Client
	runs  asynqlock.Runs
}

func start(rdb *redis.Client, name string, out io.Writer, enqueued map[string]string) (*server, error) {
	what := map[string]string{
		asynqlock.ReasonBusy: "deferred, the receipt is being sent",
		core.ReasonReplayed:  "acknowledged, the receipt was sent before",
	}
	locks, err := core.New(rdb, core.WithHooks(core.Hooks{NotRun: func(ctx context.Context, n core.NotRun) {
		id, _ := asynq.GetTaskID(ctx)
		fmt.Fprintf(out, "%s  order %s, other task: %s\n", name, enqueued[id], what[n.Reason])
	}}), core.WithLogger(nil)) // the hook prints what the log would say
	if err != nil {
		return nil, err
	}
	s := &server{locks: locks}
	mux := asynq.NewServeMux()

	// This, and Configure below, is all that is added.
	mux.Use(asynqlock.Once(
		locks, asynqlock.ByPayload("order"), asynqlock.WithRetryIn(time.Second), asynqlock.WithRuns(&s.runs),
		core.WithRetention(time.Minute), // longer in a service: as long as a task may come again
	))
	mux.HandleFunc("receipt:send", func(_ context.Context, t *asynq.Task) error {
		time.Sleep(100 * time.Millisecond)
		_, err := fmt.Fprintf(out, "%s  order %s: receipt sent\n", name, enqueued[t.ResultWriter().TaskID()])
		return err
	})

	cfg := asynq.Config{
		Queues: map[string]int{queue: 1}, Concurrency: 2, LogLevel: asynq.ErrorLevel,
		TaskCheckInterval: 100 * time.Millisecond, DelayedTaskCheckInterval: 200 * time.Millisecond,
	}
	asynqlock.Configure(&cfg)
	s.asynq = asynq.NewServerFromRedisClient(rdb, cfg)
	if err := s.asynq.Start(mux); err != nil {
		return nil, errors.Join(err, locks.Close())
	}
	return s, nil
}

// stop waits for asynq, then for the handlers that asynq does not wait for, and only then lets go of the locks.
func (s *server) stop(ctx context.Context) {
	s.asynq.Shutdown()
	_ = s.runs.Drain(ctx)
	_ = s.locks.Close()
}

// await returns when no task is left, and removes the queue.
func await(ctx context.Context, rdb *redis.Client) error {
	inspector := asynq.NewInspectorFromRedisClient(rdb)
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		info, err := inspector.GetQueueInfo(queue)
		switch {
		case err != nil:
			return err
		case info.Size == 0:
			return inspector.DeleteQueue(queue, false)
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
