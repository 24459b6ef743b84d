package asynqlock_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/hibiken/asynq"
	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/locktest"
)

func ExampleEnqueue() {
	store := locktest.NewServer()
	defer store.Close()
	queue, locks := asynq.RedisClientOpt{Addr: store.Addr()}, store.NewClient()

	// On every worker: a tick takes effect once, however often its task is delivered or enqueued.
	ran := make(chan time.Time, 10)
	mux := asynq.NewServeMux()
	mux.Handle("report:write", asynqlock.Once(locks, asynqlock.ByTick())(asynq.HandlerFunc(
		func(ctx context.Context, t *asynq.Task) error {
			_, tick, _ := asynqlock.TickFrom(ctx) // that of the schedule, also if the task runs late
			ran <- tick
			return nil
		})))
	cfg := exampleConfig()
	asynqlock.Configure(&cfg)
	server := asynq.NewServer(queue, cfg)
	if err := server.Start(mux); err != nil {
		log.Fatal(err)
	}
	defer server.Shutdown()

	// On every replica: each tick enqueues the task once.
	client := asynq.NewClient(queue)
	defer client.Close()
	c := cron.New(cron.WithLocation(time.UTC))
	task := asynq.NewTask("report:write", nil, asynq.Queue("default"), asynq.MaxRetry(5))
	if _, err := asynqlock.Enqueue(c, locks, client, "@every 1s", "report", task); err != nil {
		log.Fatal(err)
	}
	c.Start()
	first, second := <-ran, <-ran
	<-c.Stop().Done()
	fmt.Println("two ticks:", !second.Equal(first), "at full seconds:", first.Nanosecond()+second.Nanosecond() == 0)
	// Output:
	// two ticks: true at full seconds: true
}
