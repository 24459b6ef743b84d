package httpguard_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast/locktest"
	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
)

// An adapter makes a key of the request, gives the engine the handler to run, and writes what it says instead.
func ExampleExclusive() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()

	config := httpguard.ExclusiveConfig()
	config.AskTimeout = time.Minute // so that this example runs on a slow machine too
	engine, err := httpguard.NewExclusive(locks.Mutex, config)
	if err != nil {
		panic(err)
	}
	handle := func(ctx context.Context, user string, handler func(context.Context) httpguard.Answered) {
		var conflict *httpguard.Conflict
		if key, err := httpguard.NewKey("user", user); err != nil {
			conflict = engine.Refuse(ctx, "", err)
		} else {
			conflict = engine.Do(ctx, httpguard.Request{Key: key}, handler)
		}
		if conflict != nil {
			problem := conflict.Problem()
			fmt.Println(problem.Status, problem.Code)
		}
	}

	handle(context.Background(), "ada", func(context.Context) httpguard.Answered {
		fmt.Println("first request runs")
		handle(context.Background(), "ada", says("never at the same time"))
		return httpguard.Answered{Status: http.StatusOK}
	})
	handle(context.Background(), "ada", says("third request runs"))
	handle(context.Background(), "", says("never without key"))

	// Output:
	// first request runs
	// 409 lock-conflict
	// third request runs
	// 400 key-required
}

// says is a handler.
func says(text string) func(context.Context) httpguard.Answered {
	return func(context.Context) httpguard.Answered {
		fmt.Println(text)
		return httpguard.Answered{Status: http.StatusOK}
	}
}
