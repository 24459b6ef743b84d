package asynqlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/hibiken/asynq"
	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
)

// Enqueue adds a job to a schedule that runs on several replicas: each tick enqueues the task once. It is
// [cronlock.AddFunc] with a task in place of the function, and takes its options; arguments and errors are the same.
//
// The task ID is "cron:", the name, ":" and the tick in UTC (RFC 3339), as [TickFrom] reads it. So a second attempt at
// enqueuing a tick is a conflict for asynq, and counts as success. A task that fails and ends up in asynq's archive keeps
// its own tick from being enqueued again, and no other one. The options of the task are kept (Queue, MaxRetry, Timeout,
// Retention, ...), except for TaskID, which is overridden. [asynq.Unique] contradicts it: a tick that it refuses is
// reported as failed.
//
// If the task cannot be enqueued, that is tried again until the start deadline of the tick; then the tick is reported as
// failed. Since the ID makes that safe, these are the defaults, before opts: cronlock.WithFailover(3), so that another
// replica takes over from one that dies or is shut down meanwhile; cronlock.WithTTL(10*time.Second), so that it does so
// soon; and cronlock.AllowOverlap(), so that a tick that is still tried does not keep the next one from being enqueued.
// A start deadline that is not longer than the TTL leaves no time for a failover. Ticks that all replicas miss are over,
// unless [cronlock.WithCatchUp] says otherwise.
//
// A tick is enqueued at least once: if its task completes, and is deleted, before a lost reply is asked for again, it is
// enqueued a second time. Guard the handler by [ByTick], or keep completed tasks with [asynq.Retention], for longer than
// the start deadline. With Once(locks, ByTick()) a tick takes effect once.
//
// Give each job a task of its own, which is enqueued by no other means.
func Enqueue(
	c *cron.Cron, locks *core.Client, client *asynq.Client, spec, name string, task *asynq.Task, opts ...cronlock.Option,
) (cron.EntryID, error) {
	switch {
	case client == nil:
		return 0, errors.New("holdfast: asynqlock: asynq's client is nil")
	case task == nil:
		return 0, errors.New("holdfast: asynqlock: the task is nil")
	case strings.TrimSpace(task.Type()) == "":
		return 0, errors.New("holdfast: asynqlock: the task has no type")
	}
	e := &enqueuer{client: client, task: task, slot: make(chan struct{}, 1)}
	defaults := []cronlock.Option{
		cronlock.WithFailover(3), cronlock.WithTTL(10 * time.Second), cronlock.AllowOverlap(),
	}
	return cronlock.AddFunc(c, locks, spec, name, e.run, append(defaults, opts...)...)
}

// The pauses between two attempts to enqueue a task, give or take half of them.
const (
	firstEnqueuePause   = 100 * time.Millisecond
	longestEnqueuePause = 5 * time.Second
)

// enqueueTimeout bounds the attempts of a run without start deadline, that of [cronlock.RunNow].
const enqueueTimeout = time.Minute

// enqueuer enqueues the task of a job.
type enqueuer struct {
	client *asynq.Client
	task   *asynq.Task
	// slot holds one element while the task is being enqueued. Why: asynq appends options to the slice that the task
	// has, in place if there is room, so that two ticks at a time could get each other's ID.
	slot chan struct{}
}

// run enqueues the task of a tick. It is what cronlock runs.
func (e *enqueuer) run(ctx context.Context) error {
	run, _ := cronlock.RunFrom(ctx)
	deadline := run.Deadline
	if deadline.IsZero() {
		deadline = time.Now().Add(enqueueTimeout)
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	for attempts, pause := 1, firstEnqueuePause; ; attempts, pause = attempts+1, min(2*pause, longestEnqueuePause) {
		err := e.enqueue(ctx, tickID(run.Job, run.Tick))
		switch {
		case err == nil, errors.Is(err, asynq.ErrTaskIDConflict): // it is there already
			return nil
		case errors.Is(err, asynq.ErrDuplicateTask):
			return fmt.Errorf("holdfast: asynqlock: job %q: another task holds the lock of asynq.Unique: remove that option, "+
				"the task ID tells ticks apart: %w", run.Job, err)
		}
		timer := time.NewTimer(pause/2 + rand.N(pause))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("holdfast: asynqlock: job %q: not enqueued after %d attempts, %w: %w",
				run.Job, attempts, context.Cause(ctx), err)
		}
	}
}

// enqueue makes one attempt, which is bounded by the timeouts of asynq's client.
func (e *enqueuer) enqueue(ctx context.Context, id string) error {
	select {
	case e.slot <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-e.slot }()
	_, err := e.client.EnqueueContext(ctx, e.task, asynq.TaskID(id))
	return err
}
