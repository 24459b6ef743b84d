package cronlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/locktest"
)

func ExampleAddFunc() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()
	ctx, shutdown := context.WithCancel(context.Background())
	defer shutdown()

	c := cron.New(cron.WithLocation(time.UTC), cron.WithChain(cron.Recover(cron.DefaultLogger)))
	_, err := cronlock.AddFunc(c, locks, "0 3 * * *", "report", func(ctx context.Context) error {
		run, _ := cronlock.RunFrom(ctx)
		fmt.Println("the report of", run.Tick)
		return nil
	}, cronlock.WithContext(ctx), cronlock.WithFailover(2), cronlock.WithStartDeadline(10*time.Minute))
	fmt.Println("error:", err)
	c.Start()

	// At the end of the service:
	stopped := c.Stop()
	shutdown()
	<-stopped.Done()
	// Output:
	// error: <nil>
}

func ExampleExclusive() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()

	job := cron.FuncJob(func() { fmt.Println("nobody else vacuums now") })
	alone := cron.NewChain(
		cron.Recover(cron.DefaultLogger),
		cronlock.Exclusive(locks.Mutex, "vacuum", core.WithWait(time.Minute)),
	).Then(job)

	c := cron.New()
	_, err := c.AddJob("@hourly", alone)
	fmt.Println("error:", err)
	alone.Run() // as the scheduler does
	// Output:
	// error: <nil>
	// nobody else vacuums now
}

func ExampleLeader() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()
	election := locks.Election("scheduler")
	ctx, shutdown := context.WithCancel(context.Background())

	c := cron.New(cron.WithChain(cron.Recover(cron.DefaultLogger), cronlock.Leader(election)))
	id, err := c.AddJob("@hourly", cronlock.JobFunc(func(ctx context.Context) error {
		_, ok := core.TokenFrom(ctx) // the term, for every write; ctx ends with leadership
		fmt.Println("the leader runs, with a token:", ok)
		return nil
	}))
	fmt.Println("error:", err)
	c.Entry(id).WrappedJob.Run() // skipped: no replica leads yet

	_ = election.Run(ctx, func(ctx context.Context) error { // in a goroutine of its own
		c.Entry(id).WrappedJob.Run() // as the scheduler does
		shutdown()
		<-ctx.Done()
		return nil
	})
	// Output:
	// error: <nil>
	// the leader runs, with a token: true
}

func ExampleWithLeader() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()
	election := locks.Election("scheduler") // some goroutine calls its Run

	c := cron.New(cron.WithLocation(time.UTC))
	_, err := cronlock.AddFunc(c, locks, "0 3 * * *", "report", func(context.Context) error {
		return nil
	}, cronlock.WithLeader(election))
	fmt.Println("error:", err)
	fmt.Println(cronlock.Job(locks, "report").Run(context.Background(), c))
	// Output:
	// error: <nil>
	// holdfast: cronlock: job "report": holdfast: not the leader: election "scheduler"
}

func ExampleJobHandle_Run() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient(core.WithInstance("pod-1"), core.WithLogger(nil))
	ctx := context.Background()
	c := cron.New(cron.WithLocation(time.UTC))
	_, _ = cronlock.AddFunc(c, locks, "0 3 * * *", "report", func(context.Context) error {
		return errors.New("no paper")
	})

	job := cronlock.Job(locks, "report")
	fmt.Println(job.Run(ctx, c))
	runs, _ := job.History(ctx)
	for _, run := range runs {
		fmt.Println(run.Job, run.Replica, run.Outcome)
	}
	// Output:
	// no paper
	// report pod-1 failed
}

func ExampleJob() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()
	ctx := context.Background()

	c := cron.New(cron.WithLocation(time.UTC))
	_, err := cronlock.AddFunc(c, locks, "0 3 * * *", "report", func(context.Context) error { return nil })
	if err != nil {
		log.Fatal(err)
	}
	c.Start() // registers the job
	defer c.Stop()

	job := cronlock.Job(locks, "report")
	for errors.Is(job.Pause(ctx, "anna"), cronlock.ErrUnknownJob) {
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Println(job.Paused(ctx))
	_ = job.Resume(ctx)
	fmt.Println(job.Paused(ctx))
	// Output:
	// true <nil>
	// false <nil>
}
