package gocronlock_test

import (
	"context"
	"fmt"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/gocronlock"
	"github.com/holdfast-go/holdfast/locktest"
)

// Only the leader of all replicas runs jobs.
func ExampleElector() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()
	ctx, shutdown := context.WithCancel(context.Background())

	elector := gocronlock.Elector(locks.Election("scheduler", core.WithTTL(15*time.Second)))
	led := make(chan error)
	go func() { led <- elector.Lead(ctx) }() // without it no job runs

	s, _ := gocron.NewScheduler(gocron.WithDistributedElector(elector))
	ran := make(chan bool, 1)
	_, err := s.NewJob(gocron.DurationJob(10*time.Millisecond), gocron.NewTask(elector.Func(func(ctx context.Context) error {
		_, ok := core.TokenFrom(ctx) // the term, for every write; ctx is cancelled when leadership is lost
		select {
		case ran <- ok:
		default:
		}
		return nil
	})))
	fmt.Println("error:", err)
	s.Start()
	fmt.Println("the leader runs, with a token:", <-ran)

	// At the end of the service: first the jobs, then leadership.
	fmt.Println("scheduler:", s.Shutdown())
	shutdown()
	fmt.Println("lead:", <-led)
	// Output:
	// error: <nil>
	// the leader runs, with a token: true
	// scheduler: <nil>
	// lead: <nil>
}

// Each run of a job takes a lock named after it. The minimum hold is nearly the period.
func ExampleLocker() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()

	hourly := gocronlock.Locker(locks.Mutex, core.WithMinHold(55*time.Minute))
	ran, skipped := make(chan bool), make(chan error, 1)
	var replicas []gocron.Scheduler
	replica := func() gocron.Job {
		s, _ := gocron.NewScheduler()
		s.Start()
		replicas = append(replicas, s)
		job, _ := s.NewJob(gocron.DurationJob(time.Hour), gocron.NewTask(hourly.Func(func(ctx context.Context) error {
			_, ok := core.TokenFrom(ctx) // ctx ends if the lease is lost
			ran <- ok
			return nil
		})), gocron.WithName("billing/report"), gocron.WithDistributedJobLocker(hourly),
			gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { skipped <- err })))
		return job
	}
	_ = replica().RunNow()
	fmt.Println("one replica runs, with a token:", <-ran)
	_ = replica().RunNow() // its clock is behind
	fmt.Println("another one skips:", <-skipped != nil)
	for _, s := range replicas {
		_ = s.Shutdown()
	}
	// Output:
	// one replica runs, with a token: true
	// another one skips: true
}
