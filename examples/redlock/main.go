// Redlock locks on three independent Redis servers. One of them may fail. Without a majority the lock
// cannot be had.
//
// It always uses embedded servers, because it stops two of them. Run it from the root of the repository.
//
//	go run ./examples/redlock
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/locktest"
)

func main() {
	logging.Disable() // go-redis would log each failed dial
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	var servers []*locktest.Server
	var nodes []redis.UniversalClient // in a service: redis.NewClient for each master
	for range 3 {
		server := locktest.NewServer()
		defer server.Close()
		servers, nodes = append(servers, server), append(nodes, server.Redis())
	}
	locks, err := core.NewRedlock(nodes, core.WithLogger(nil),
		core.WithNodeTimeout(5*time.Second)) // for slow machines; a server that has failed refuses at once
	if err != nil {
		return err
	}
	defer locks.Close()
	report := locks.Mutex("example:report")

	write := func(context.Context) error {
		err := report.TryDo(ctx, func(context.Context) error { return nil })
		fmt.Fprintln(out, "  the report is written; a second writer is refused:", errors.Is(err, core.ErrNotAcquired))
		return nil
	}
	fmt.Fprintln(out, "three servers:")
	if err := report.Do(ctx, write); err != nil {
		return err
	}

	servers[0].Stop()
	fmt.Fprintln(out, "one of them fails:")
	if err := report.Do(ctx, write); err != nil {
		return err
	}

	servers[1].Stop()
	fmt.Fprintln(out, "two of them fail:")
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	err = report.Do(short, write)
	fmt.Fprintln(out, "  no majority, no lock:", errors.Is(err, core.ErrUnavailable))
	return nil
}
