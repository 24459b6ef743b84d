package cronworker

import (
	"context"
	"os"
	"sync/atomic"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
)

// replica is a process that runs jobs.
type replica struct {
	order   Order
	locks   *core.Client
	journal *Journal
	ctx     context.Context
	stop    context.CancelCauseFunc
}

// late is a wrapper for all jobs.
func (r *replica) late(job cron.Job) cron.Job {
	return cron.FuncJob(func() {
		pause(r.ctx, r.order.Lag)
		job.Run()
	})
}

func (r *replica) add(c *cron.Cron, job Job) error {
	if job.Naive {
		return r.addNaive(c, job)
	}
	opts := []cronlock.Option{
		cronlock.WithContext(r.ctx), core.WithTTL(job.TTL),
		cronlock.WithHistory(3000),
	}
	if job.Deadline > 0 {
		opts = append(opts, cronlock.WithStartDeadline(job.Deadline))
	}
	if job.Attempts > 0 {
		opts = append(opts, cronlock.WithFailover(job.Attempts))
	}
	_, err := cronlock.AddFunc(c, r.locks, job.Spec, job.Name, func(ctx context.Context) error {
		run, _ := cronlock.RunFrom(ctx)
		return r.perform(ctx, job, run)
	}, opts...)
	return err
}

// addNaive adds a job that is locked, run and unlocked. Each process has ticks of its own, and counts them by what its
// scheduler calls them.
func (r *replica) addNaive(c *cron.Cron, job Job) error {
	mutex := r.locks.Mutex("naive:"+job.Name, core.WithTTL(job.TTL))
	var id atomic.Int64
	ready := make(chan struct{})
	entry, err := c.AddFunc(job.Spec, func() {
		<-ready
		tick := c.Entry(cron.EntryID(id.Load())).Prev
		lease, err := mutex.TryLock(r.ctx)
		if err != nil {
			return
		}
		run := cronlock.Run{Tick: tick, Attempt: 1, Token: lease.Token()}
		_ = r.perform(lease.Context(), job, run)
		_ = lease.Unlock(context.WithoutCancel(r.ctx)) // it may have been lost
	})
	id.Store(int64(entry))
	close(ready)
	return err
}

// perform is the job. It writes its result although its context may be over, as a job does that does not look.
func (r *replica) perform(ctx context.Context, job Job, run cronlock.Run) error {
	entry := r.entry(Begin)
	entry.Job, entry.Tick, entry.Attempt, entry.Token = job.Name, run.Tick.Unix(), run.Attempt, run.Token
	r.record(entry)
	pause(ctx, job.Length)
	entry.Kind, entry.Over = End, ctx.Err() != nil
	r.record(entry)
	return ctx.Err()
}

func (r *replica) skipped(_ context.Context, not core.NotRun) {
	entry := r.entry(Skip)
	entry.Job, entry.Tick, entry.Reason = not.Label, not.Due.Unix(), not.Reason
	r.record(entry)
}

// reportUp reports that the ticks have begun, and how far the clock is ahead of Redis's.
func (r *replica) reportUp() error {
	server, err := r.journal.Now(context.Background())
	entry := r.entry(Up)
	entry.Ahead = time.Now().Round(0).Sub(server)
	r.record(entry)
	return err
}

func (r *replica) entry(kind Kind) Entry {
	return Entry{Kind: kind, Replica: r.order.Replica, PID: os.Getpid()}
}

// record ends the replica if the test's own Redis fails: the test would be worth nothing.
func (r *replica) record(entry Entry) {
	if err := r.journal.Record(context.Background(), entry); err != nil {
		r.stop(err)
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
