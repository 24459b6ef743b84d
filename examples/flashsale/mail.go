package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/asynqlock"
)

// mailroom is the asynq server of one replica. Its connection pool is separate from the locks', so that their
// renewals do not wait for it.
type mailroom struct {
	rdb    *redis.Client
	server *asynq.Server
	runs   asynqlock.Runs
}

// startMailroom begins to send the receipts of all replicas.
func startMailroom(s *site, shop *shop) (*mailroom, error) {
	options := *s.redis.options
	m := &mailroom{rdb: redis.NewClient(&options)}
	shop.tasks, shop.queue = asynq.NewClientFromRedisClient(m.rdb), s.queue
	mux := asynq.NewServeMux()
	mux.Use(shop.guards.receipt(asynqlock.WithRuns(&m.runs)))
	mux.HandleFunc(receiptSend, shop.sendReceipt)
	cfg := asynq.Config{
		Queues: map[string]int{s.queue: 1}, Concurrency: 8, ShutdownTimeout: closeTimeout, LogLevel: asynq.ErrorLevel,
		// A sale takes seconds: by default asynq looks for tasks every second, and every 5 s for those that come again.
		TaskCheckInterval: 200 * time.Millisecond, DelayedTaskCheckInterval: time.Second,
	}
	asynqlock.Configure(&cfg)
	m.server = asynq.NewServerFromRedisClient(m.rdb, cfg)
	if err := m.server.Start(mux); err != nil {
		return nil, errors.Join(err, m.rdb.Close())
	}
	return m, nil
}

// close waits for the handlers: first asynq does, for a time, then holdfast for those that asynq has given up and that
// still have a record to write. The client of the locks must be open until then.
func (m *mailroom) close(ctx context.Context) error {
	m.server.Shutdown()
	return errors.Join(m.runs.Drain(ctx), m.rdb.Close())
}

// mailTimeout is how long the receipts may take that are under way when the crowd has left.
const mailTimeout = 30 * time.Second

// awaitMail returns when all tasks are done but those that were archived, and how many are left.
func (s *site) awaitMail(ctx context.Context) (left int, err error) {
	ctx, cancel := context.WithTimeout(ctx, mailTimeout)
	defer cancel()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	queues, err := s.inspector.Queues()
	if err != nil || !slices.Contains(queues, s.queue) { // nobody has paid
		return 0, err
	}
	for {
		info, err := s.inspector.GetQueueInfo(s.queue)
		switch {
		case err != nil:
			return 0, fmt.Errorf("queue of receipts: %w", err)
		case info.Size == info.Archived || ctx.Err() != nil:
			return info.Size, nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
		}
	}
}
