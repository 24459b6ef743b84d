// Fair serves waiters of all processes in the order of their arrival: first come, first served.
//
// Four clients of one program stand for four processes: they share nothing but Redis. Run it from the root of the
// repository.
//
//	go run ./examples/fair
package main

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/examples/internal/example"
)

func main() { example.Main(run) }

func run(ctx context.Context, out io.Writer, rdb *redis.Client) error {
	holder, err := core.New(rdb)
	if err != nil {
		return err
	}
	defer holder.Close()
	lease, err := holder.Fair("example:printer").Lock(ctx)
	if err != nil {
		return err
	}

	var printing sync.WaitGroup
	defer printing.Wait()
	defer lease.Unlock(ctx)
	fmt.Fprintln(out, "four clients of this program stand for four processes; the first one holds the lock")
	for _, name := range []string{"ada", "bob", "eve"} {
		queued := make(chan core.Wait, 1)
		locks, err := core.New(rdb, core.WithHooks(core.Hooks{
			Wait: func(_ context.Context, w core.Wait) { queued <- w },
		}))
		if err != nil {
			return err
		}
		printing.Go(func() {
			defer locks.Close()
			err := locks.Fair("example:printer").Do(ctx, func(context.Context) error {
				fmt.Fprintln(out, name, "prints")
				return nil
			})
			if err != nil {
				fmt.Fprintln(out, name, "gives up:", err)
			}
		})
		select {
		case w := <-queued: // before the next one comes
			fmt.Fprintln(out, name, "waits, position", w.Position)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
