package asynqlock_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/asynqlock"
)

// The changes to one document are applied one right after the other, although there are ten workers.
func ExampleWithLine() {
	queue, locks, done := exampleRedis()
	defer done()
	rdb := redis.NewClient(&redis.Options{Addr: queue.Addr})
	defer rdb.Close()
	const changes = 20
	var all sync.WaitGroup
	all.Add(changes)

	document := 0 // no mutex: the guard excludes
	handler := asynqlock.Exclusive(locks.Fair, asynqlock.ByPayload("document"), asynqlock.WithLine(rdb))(
		asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
			defer all.Done()
			document++
			return nil
		}))
	cfg := exampleConfig()
	asynqlock.Configure(&cfg)
	server := asynq.NewServer(queue, cfg)
	if err := server.Start(handler); err != nil {
		log.Fatal(err)
	}
	defer server.Shutdown()

	for range changes {
		enqueue(queue, asynq.NewTask("document:change", []byte(`{"document":"report"}`)))
	}
	all.Wait()
	fmt.Println(document, "changes")
	// Output: 20 changes
}
