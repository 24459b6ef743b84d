// Election lets one process of many lead. When it stops, the next one leads at once, and all others can see who leads.
//
// Clients of one program stand for processes: they share nothing but Redis. Run it from the root of the repository.
//
//	go run ./examples/election
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
	observer, err := core.New(rdb)
	if err != nil {
		return err
	}
	defer observer.Close()

	replicas := map[string]context.CancelFunc{}
	var running sync.WaitGroup
	defer running.Wait()
	for _, name := range []string{"ada", "bob"} {
		locks, err := core.New(rdb)
		if err != nil {
			return err
		}
		replica, stop := context.WithCancel(ctx)
		defer stop()
		replicas[name] = stop
		running.Go(func() {
			defer locks.Close()
			err := locks.Election("example:scheduler", core.WithValue(name)).Run(replica, lead)
			if err != nil && !errors.Is(err, context.Canceled) {
				fmt.Fprintln(out, name, "campaigns no more:", err)
			}
		})
	}

	led, last := 0, int64(0)
	for leader := range observer.Election("example:scheduler").Observe(ctx) {
		if leader.Value == "" {
			continue // no replica leads, or its value follows
		}
		fmt.Fprintln(out, "a replica leads; its term is greater than the last one:", leader.Term > last)
		last = leader.Term
		replicas[leader.Value]() // the deployment stops it
		if led++; led == len(replicas) {
			return nil
		}
	}
	return ctx.Err()
}

// lead is the work of the leader. Its context is cancelled when leadership is lost, and carries the term as the fencing token.
func lead(ctx context.Context) error {
	if _, ok := core.TokenFrom(ctx); !ok {
		return errors.New("no term")
	}
	<-ctx.Done()
	return nil
}
