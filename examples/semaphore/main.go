// Semaphore admits at most n at a time, over all processes: here two calls of a payment gateway.
//
// Clients of one program stand for processes: they share nothing but Redis. Run it from the root of the repository.
//
//	go run ./examples/semaphore
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

const atMost = 2

func main() { example.Main(run) }

func run(ctx context.Context, out io.Writer, rdb *redis.Client) error {
	var leases []*core.Lease
	for _, name := range []string{"ada", "bob"} {
		locks, err := core.New(rdb)
		if err != nil {
			return err
		}
		defer locks.Close()
		lease, err := locks.Semaphore("example:gateway", atMost).Lock(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, name, "calls the gateway, in slot", lease.Slot())
		leases = append(leases, lease)
	}

	locks, err := core.New(rdb)
	if err != nil {
		return err
	}
	defer locks.Close()
	_, err = locks.Semaphore("example:gateway", atMost).TryLock(ctx)
	if !errors.Is(err, core.ErrNotAcquired) {
		return fmt.Errorf("a third call should be refused, but: %w", err)
	}
	fmt.Fprintln(out, "eve is refused: two calls are running")

	// n is of the request, not of the semaphore: a new version may allow more while the old one still runs.
	lease, err := locks.Semaphore("example:gateway", atMost+1).TryLock(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "eve calls the gateway with a limit of three, in slot", lease.Slot())
	for _, held := range append(leases, lease) {
		if err := held.Unlock(ctx); err != nil {
			return err
		}
	}
	return nil
}
