package cronworker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
)

// Env names the environment variable that holds an [Order], in JSON.
const Env = "HOLDFAST_TEST_CRONWORKER"

// ClockEnv names the one that shifts the wall clock of a replica, as a duration. It works only in programs that were
// built with an overlay of package time, see the tests.
const ClockEnv = "HOLDFAST_TEST_CLOCK"

// Order is what a replica is to do.
type Order struct {
	Replica string
	// Locks and Journal are two servers: for the locks, and for the test.
	Locks, Journal Server
	// Lag delays every job of this replica: so long after others does it come for a tick, as one does whose clock is slow.
	Lag  time.Duration
	Jobs []Job
}

// Server is the address of a Redis.
type Server struct{ Network, Addr string }

func (s Server) options() *redis.Options { return &redis.Options{Network: s.Network, Addr: s.Addr} }

// patient waits for a reply for as long as a replica may be stopped. An entry whose reply came too late would be
// written once more, and a run counted twice.
func patient(o *redis.Options) *redis.Options {
	o.ReadTimeout, o.WriteTimeout, o.MaxRetries = time.Hour, time.Hour, -1
	return o
}

// Job is one job of a replica.
type Job struct {
	Name, Spec string
	Length     time.Duration // that a run takes
	TTL        time.Duration
	Deadline   time.Duration // 0: the default
	Attempts   int           // 0: the default
	// Naive is lock, run, unlock: no two runs at a time, which is all that many wrappers of cron do.
	Naive bool
}

// Work carries out an order until the input ends.
func Work(text string, input io.Reader) error {
	var order Order
	if err := json.Unmarshal([]byte(text), &order); err != nil {
		return fmt.Errorf("order: %w", err)
	}
	logging.Disable() // it would tell of every dial while Redis is down
	rdb := redis.NewClient(order.Locks.options())
	defer rdb.Close()
	journal := OpenJournal(redis.NewClient(patient(order.Journal.options())))
	defer journal.rdb.Close()
	ctx, stop := context.WithCancelCause(context.Background())
	r := &replica{order: order, journal: journal, ctx: ctx, stop: stop}
	var err error
	r.locks, err = core.New(rdb, core.WithLogger(nil), core.WithInstance(order.Replica), core.WithHooks(core.Hooks{NotRun: r.skipped}))
	if err != nil {
		return err
	}
	defer r.locks.Close()
	c := cron.New(cron.WithSeconds(), cron.WithChain(r.late))
	for _, job := range order.Jobs {
		if err := r.add(c, job); err != nil {
			return err
		}
	}
	c.Start()
	if err := r.reportUp(); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, input)
		stop(errTold)
	}()
	<-ctx.Done()
	<-c.Stop().Done()
	if err := context.Cause(ctx); !errors.Is(err, errTold) {
		return err
	}
	return nil
}

var errTold = errors.New("told to stop")
