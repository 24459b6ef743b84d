// Observe puts load on locks of all kinds, and serves their metrics for Prometheus.
//
// It stands for a service with two replicas: they contend for mutexes, a fair lock, a semaphore, a read-write lock and the
// lead, record payments in a Once, handle messages behind a guard of their own, and lose a lease now and then. Run it from the
// root of the repository.
//
//	go run ./examples/observe                                  # for 5 seconds; it prints the address, and some metrics
//	go run ./examples/observe -listen localhost:9464 -for 1h   # let a Prometheus scrape it
//
// otellock/dashboards has the dashboard and the alerts that fit.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/examples/internal/example"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "`address` to serve /metrics at; port 0 is a free one")
	duration := flag.Duration("for", 5*time.Second, "how long to run")
	flag.Parse()
	example.Main(func(ctx context.Context, out io.Writer, rdb *redis.Client) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		time.AfterFunc(*duration, cancel) // no deadline: that would count as waits that have timed out
		return observe(ctx, out, rdb, *listen)
	})
}

// observe runs the load until ctx ends.
func observe(ctx context.Context, out io.Writer, rdb *redis.Client, listen string) (err error) {
	telemetry, err := startTelemetry(listen)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, telemetry.close()) }()
	fmt.Fprintln(out, "metrics at", telemetry.url)
	var replicas []*core.Client
	for range 2 {
		// A short TTL, so that renewals and losses are to be seen within seconds.
		locks, err := core.New(rdb, core.WithHooks(telemetry.hooks), core.WithPrefix("observe:"),
			core.WithTTL(1500*time.Millisecond), core.WithLogger(nil))
		if err != nil {
			return err
		}
		defer locks.Close()
		replicas = append(replicas, locks)
	}
	if err := load(ctx, replicas, telemetry.hooks); err != nil {
		return err
	}
	return telemetry.summary(out)
}
