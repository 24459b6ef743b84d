// Mutex lets no two processes do something at the same time: one waits, another one is refused.
//
// Three clients of one program stand for three processes: they share nothing but Redis. Run it from the root of the
// repository.
//
//	go run ./examples/mutex
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/examples/internal/example"
)

func main() { example.Main(run) }

func run(ctx context.Context, out io.Writer, rdb *redis.Client) error {
	var processes []*core.Client // one client for each
	for range 3 {
		locks, err := core.New(rdb)
		if err != nil {
			return err
		}
		defer locks.Close()
		processes = append(processes, locks)
	}
	fmt.Fprintln(out, "three clients of this program stand for three processes")

	// TryDo refuses: the lock is held.
	err := processes[0].Mutex("example:account").Do(ctx, func(context.Context) error {
		err := processes[1].Mutex("example:account").TryDo(ctx, func(context.Context) error { return nil })
		if errors.Is(err, core.ErrNotAcquired) {
			fmt.Fprintln(out, "process 1 holds the lock; TryDo of process 2 is refused")
			return nil
		}
		return fmt.Errorf("process 2 was not refused: %w", err)
	})
	if err != nil {
		return err
	}

	// Do waits for its turn. Nothing else keeps these 30 goroutines of three processes from reading the same balance.
	balance := 0
	var all sync.WaitGroup
	failed := make(chan error, 30)
	for i := range 30 {
		all.Go(func() {
			failed <- processes[i%3].Mutex("example:account").Do(ctx, func(context.Context) error {
				read := balance
				balance = read + 10
				return nil
			})
		})
	}
	all.Wait()
	for range 30 {
		if err := <-failed; err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "30 deposits of 10 from three processes, one at a time: the balance is", balance)
	return nil
}
