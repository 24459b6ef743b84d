// Multi takes several locks at once, all or none, so that money moves between accounts without a deadlock.
//
// Run it from the root of the repository.
//
//	go run ./examples/multi
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
	locks, err := core.New(rdb)
	if err != nil {
		return err
	}
	defer locks.Close()
	accounts := map[string]*int{"ada": new(int), "bob": new(int), "eve": new(int)}
	for _, balance := range accounts {
		*balance = 100
	}
	account := func(owner string) *core.Lock { return locks.Mutex("example:account:" + owner) }

	transfer := func(from, to string) error {
		return core.Multi(account(from), account(to)).Do(ctx, func(context.Context) error {
			*accounts[from]--
			*accounts[to]++
			return nil
		})
	}
	// Each names the accounts in another order, which would be a deadlock with one lock after the other.
	var all sync.WaitGroup
	errs := make([]error, 60)
	for i := range errs {
		ways := [][2]string{{"ada", "bob"}, {"bob", "ada"}, {"bob", "eve"}, {"eve", "ada"}, {"ada", "eve"}, {"eve", "bob"}}
		all.Go(func() { errs[i] = transfer(ways[i%len(ways)][0], ways[i%len(ways)][1]) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	fmt.Fprintln(out, "after 60 transfers ada has", *accounts["ada"], "bob", *accounts["bob"], "eve", *accounts["eve"])

	// Not one of the locks is taken if another one cannot be had.
	return account("ada").Do(ctx, func(context.Context) error {
		_, err := core.Multi(account("bob"), account("ada")).TryLock(ctx)
		fmt.Fprintln(out, "a transfer while ada's account is locked is refused:", errors.Is(err, core.ErrNotAcquired))
		return account("bob").TryDo(ctx, func(context.Context) error {
			fmt.Fprintln(out, "bob's account is free")
			return nil
		})
	})
}
