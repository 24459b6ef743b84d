package asynqlock_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/locktest"
)

// The changes to one document are applied one right after the other, although there are ten workers.
func ExampleWithLine() {
	store := locktest.NewServer()
	defer store.Close()
	queue, locks := asynq.RedisClientOpt{Addr: store.Addr()}, store.NewClient()
	const changes = 20
	var all sync.WaitGroup
	all.Add(changes)

	document := 0 // no mutex: the guard excludes
	handler := asynqlock.Exclusive(locks.Fair, asynqlock.ByPayload("document"), asynqlock.WithLine(store.Redis()))(
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
