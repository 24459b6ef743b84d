// Once does not repeat a run that has succeeded: later calls get the recorded result.
//
// Run it from the root of the repository.
//
//	go run ./examples/once
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/examples/internal/example"
)

func main() { example.Main(run) }

func run(ctx context.Context, out io.Writer, rdb *redis.Client) error {
	locks, err := core.New(rdb)
	if err != nil {
		return err
	}
	defer locks.Close()
	report := locks.Once("example:report:2026-08", core.WithRetention(24*time.Hour))
	defer func() { // so that the example runs again on the same Redis; a service keeps its records
		if seen, err := report.Peek(ctx); err == nil {
			_ = report.Forget(ctx, seen)
		}
	}()

	attempts := 0
	write := func(context.Context) ([]byte, error) {
		attempts++
		if attempts == 1 {
			return nil, errors.New("the printer is out of paper")
		}
		return []byte("report no. 7"), nil
	}
	for call := range 3 {
		fmt.Fprintf(out, "Do, call %d: ", call+1)
		switch result, err := report.Do(ctx, write); {
		case err != nil:
			fmt.Fprintln(out, "failed, and may be tried again:", err)
		case result.Replayed:
			fmt.Fprintf(out, "not run, the recorded result: %s\n", result.Value)
		default:
			fmt.Fprintf(out, "run, attempt %d: %s\n", result.Attempt, result.Value)
		}
	}

	// The steps one by one, for results that are not at hand at the end of a function.
	_, err = report.Begin(ctx)
	if completed := new(core.CompletedError); errors.As(err, &completed) {
		fmt.Fprintf(out, "Begin, call 4: refused, %s: %s\n", completed.Record.State, completed.Record.Value)
	}
	return nil
}
