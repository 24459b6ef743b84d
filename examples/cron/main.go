// Cron runs one schedule on two replicas, and each tick starts on one of them.
//
// Two replicas in one program stand for two processes: they share nothing but Redis. For each tick, one replica runs the
// job, and the other one skips. Run it from the root of the repository. With REDIS_URL, what Redis has of the job stays
// for two days.
//
//	go run ./examples/cron
package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/examples/internal/example"
)

// job is a name that no other service of the Redis has.
const job = "example/greet"

func main() { example.Main(lasting(4 * time.Second)) }

// lasting lets two replicas run the schedule for a time, and prints what Redis has of it afterwards.
func lasting(length time.Duration) example.Program {
	return func(ctx context.Context, out io.Writer, rdb *redis.Client) error {
		var replicas [2]*replica
		for i := range replicas {
			var err error
			if replicas[i], err = start(ctx, rdb, fmt.Sprintf("replica-%d", i+1), out); err != nil {
				return err
			}
			defer replicas[i].stop()
		}
		select {
		case <-time.After(length):
		case <-ctx.Done():
		}
		for _, r := range replicas {
			r.stop()
		}
		return report(ctx, rdb, out)
	}
}

// replica is a process with a schedule.
type replica struct {
	cron  *cron.Cron
	locks *core.Client
}

func start(ctx context.Context, rdb *redis.Client, name string, out io.Writer) (*replica, error) {
	locks, err := core.New(rdb, core.WithInstance(name), core.WithHooks(core.Hooks{
		NotRun: func(_ context.Context, not core.NotRun) {
			fmt.Fprintf(out, "%s  %s skips: %s\n", not.Due.Format(time.TimeOnly), name, reason(not.Reason))
		},
	}))
	if err != nil {
		return nil, err
	}
	c := cron.New(cron.WithLocation(time.UTC), cron.WithChain(cron.Recover(cron.DefaultLogger)))

	// What was c.AddFunc("@every 1s", func() {…}).
	_, err = cronlock.AddFunc(c, locks, "@every 1s", job, func(ctx context.Context) error {
		run, _ := cronlock.RunFrom(ctx)
		_, err := fmt.Fprintf(out, "%s  hello from %s\n", run.Tick.Format(time.TimeOnly), name)
		return err
	}, cronlock.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	c.Start()
	return &replica{cron: c, locks: locks}, nil
}

// reason explains why a replica does not run a tick.
func reason(r string) string {
	if r == cronlock.Taken {
		return "the other replica has the tick"
	}
	return r
}

// stop waits for the runs in progress. Stopping again does nothing.
func (r *replica) stop() {
	<-r.cron.Stop().Done()
	_ = r.locks.Close()
}

// report prints the history of the job, which any client can read.
func report(ctx context.Context, rdb *redis.Client, out io.Writer) error {
	locks, err := core.New(rdb)
	if err != nil {
		return err
	}
	defer locks.Close()
	runs, err := cronlock.Job(locks, job).History(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%d ticks, the latest first:\n", len(runs))
	for _, run := range runs {
		fmt.Fprintf(out, "%s  %s  %s\n", run.Tick.Format(time.TimeOnly), run.Replica, run.Outcome)
	}
	return nil
}
