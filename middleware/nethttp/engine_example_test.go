package httplock

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/locktest"
)

// The engine of a guard, without HTTP: an adapter makes a key of the request, gives the engine the handler to run, and
// writes what it says instead.
func Example_engine() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()

	config := exclusiveSettings()
	config.AskTimeout = time.Minute // so that this example runs on a slow machine too
	engine, err := newExclusive(locks.Mutex, Unscoped(), config)
	if err != nil {
		panic(err)
	}
	handle := func(ctx context.Context, user string, handler func(context.Context)) {
		var conflict *Conflict
		if key, err := NewKey("user", user); err != nil {
			conflict = refuseKey(ctx, &engine.guard, err)
		} else {
			conflict = doExclusive(ctx, engine, item{Key: key}, handler)
		}
		if conflict != nil {
			problem := conflict.Problem()
			fmt.Println(problem.Status, problem.Code)
		}
	}

	handle(context.Background(), "ada", func(context.Context) {
		fmt.Println("first request runs")
		handle(context.Background(), "ada", says("never at the same time"))
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
func says(text string) func(context.Context) {
	return func(context.Context) {
		fmt.Println(text)
	}
}
