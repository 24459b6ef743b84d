// Readwrite lets many processes read a catalogue at the same time, and only one write it while none reads.
//
// Run it from the root of the repository.
//
//	go run ./examples/readwrite
package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/examples/internal/example"
)

func main() { example.Main(run) }

func run(ctx context.Context, out io.Writer, rdb *redis.Client) error {
	waiting := make(chan struct{}, 1)
	locks, err := core.New(rdb, core.WithHooks(core.Hooks{
		Wait: func(context.Context, core.Wait) { waiting <- struct{}{} },
	}))
	if err != nil {
		return err
	}
	defer locks.Close()

	var readers [2]*core.Lease
	for i := range readers {
		if readers[i], err = locks.Read("example:catalogue").Lock(ctx); err != nil {
			return err
		}
		defer readers[i].Unlock(ctx) // does nothing if it is unlocked already
	}
	fmt.Fprintln(out, "two readers read at the same time")

	written := make(chan error, 1)
	go func() {
		written <- locks.Write("example:catalogue").Do(ctx, func(context.Context) error {
			fmt.Fprintln(out, "the writer writes")
			return nil
		})
	}()
	select {
	case <-waiting:
		fmt.Fprintln(out, "a writer waits for them")
	case err := <-written:
		return fmt.Errorf("the writer did not wait: %w", err)
	}

	// A reader that comes now does not keep the writer waiting.
	_, err = locks.Read("example:catalogue").TryLock(ctx)
	fmt.Fprintln(out, "a reader that comes later is refused:", errors.Is(err, core.ErrNotAcquired))

	for _, lease := range readers {
		if err := lease.Unlock(ctx); err != nil {
			return err
		}
	}
	if err := <-written; err != nil {
		return err
	}
	return locks.Read("example:catalogue").Do(ctx, func(context.Context) error {
		fmt.Fprintln(out, "readers read again")
		return nil
	})
}
