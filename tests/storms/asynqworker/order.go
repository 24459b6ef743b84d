package asynqworker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
)

// Env names the environment variable that holds an [Order], in JSON.
const Env = "HOLDFAST_TEST_ASYNQWORKER"

// Order is what a server is to do.
type Order struct {
	Server string // its name
	// Network and Addr are of the Redis, with the queues and the locks.
	Network, Addr string
	Table         string // the socket of the test's table
	Concurrency   int
	// Least and Most bound how long a handler takes.
	Least, Most time.Duration
	TTL         time.Duration
	// Stubborn handlers do not look whether their context has ended.
	Stubborn bool
	// Unguarded is for the baseline.
	Unguarded bool
	// Defaults leaves asynq and the guard the times that they have by default, instead of short ones.
	Defaults bool
}

// Kind is the type of the tasks.
const Kind = "receipt:send"

// Queues are the queues of a server. asynq lets one task ID be in both.
var Queues = map[string]int{"default": 1, "second": 1}

// NewGuard returns the guard of the tasks, which has their records too.
func NewGuard(locks *core.Client, opts ...asynqlock.Option) (*asynqlock.Guard, error) {
	return asynqlock.NewOnce(locks, asynqlock.ByPayload("order"), append(opts, core.WithRetention(time.Hour))...)
}

// ended bounds how long handlers may take once the server was told to end.
const ended = 30 * time.Second

// Work carries out an order until the input ends.
func Work(text string, input io.Reader) (err error) {
	var order Order
	if err := json.Unmarshal([]byte(text), &order); err != nil {
		return fmt.Errorf("order: %w", err)
	}
	logging.Disable() // it would tell of every dial while Redis is down
	rdb := redis.NewClient(&redis.Options{Network: order.Network, Addr: order.Addr})
	defer rdb.Close()
	events, err := Open(order.Table)
	if err != nil {
		return err
	}
	defer events.Close()
	ctx, stop := context.WithCancelCause(context.Background())
	w := &worker{order: order, events: events, stop: stop}
	locks, err := core.New(rdb, core.WithLogger(nil), core.WithHooks(w.hooks()))
	if err != nil {
		return err
	}
	defer locks.Close()
	handler, err := w.handler(locks)
	if err != nil {
		return err
	}
	server := asynq.NewServer(asynq.RedisClientOpt{Network: order.Network, Addr: order.Addr}, w.config())
	if err := server.Start(handler); err != nil {
		return err
	}
	w.tell(w.events, Entry{Kind: Up})
	go func() {
		_, _ = io.Copy(io.Discard, input)
		stop(errTold)
	}()
	<-ctx.Done()
	server.Shutdown()
	drained, cancel := context.WithTimeout(context.Background(), ended)
	defer cancel()
	if err := w.runs.Drain(drained); err != nil {
		return err
	}
	if err := context.Cause(ctx); !errors.Is(err, errTold) {
		return err
	}
	return nil
}

var errTold = errors.New("told to stop")
