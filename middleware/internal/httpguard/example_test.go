package httpguard_test

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/locktest"
	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
)

// An adapter makes a key of the request, gives the engine the handler to run, and writes what it says instead.
func ExampleExclusive() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()

	config := httpguard.DefaultConfig()
	config.AskTimeout = time.Minute // so that this example runs on a slow machine too
	engine, err := httpguard.NewExclusive(locks.Mutex, config)
	if err != nil {
		panic(err)
	}
	handle := func(ctx context.Context, user string, handler func(context.Context)) {
		var conflict *httpguard.Conflict
		if key, err := httpguard.NewKey("user", user); err != nil {
			conflict = engine.Refuse(ctx, err)
		} else {
			conflict = engine.Do(ctx, httpguard.Request{Key: key}, handler)
		}
		if conflict != nil {
			problem := conflict.Problem()
			fmt.Println(problem.Status, problem.Code)
		}
	}

	handle(context.Background(), "ada", func(context.Context) {
		fmt.Println("first request runs")
		handle(context.Background(), "ada", func(context.Context) { fmt.Println("never at the same time") })
	})
	handle(context.Background(), "ada", func(context.Context) { fmt.Println("third request runs") })
	handle(context.Background(), "", func(context.Context) { fmt.Println("never without key") })

	// Output:
	// first request runs
	// 409 lock-conflict
	// third request runs
	// 400 key-required
}
