package asynqlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hibiken/asynq"
	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
)

// Enqueue adds a job to a schedule that runs on several replicas: each tick enqueues the task once. It is
// [cronlock.AddFunc] with a task in place of the function, and takes its options. It does no I/O. It returns the
// errors of AddFunc, and an error for a wrong task or wrong options of the task.
//
// The task ID is "cron:", the name, ":" and the tick in UTC (RFC 3339): see [TickFrom]. A second attempt to enqueue a
// tick is a conflict for asynq, and counts as success. A task in asynq's archive blocks its own tick, and no other
// one. The options of the task are kept (Queue, MaxRetry, Timeout, Retention, ...), except that the ID replaces
// TaskID. [asynq.Unique], [asynq.Group] and [asynq.Deadline] are refused.
//
// If enqueuing fails, it is retried until the start deadline of the tick. Then the tick is reported as failed. Ticks
// that all replicas miss are lost, unless [cronlock.WithCatchUp] says otherwise. The ID makes a second attempt safe,
// so these are the defaults, before opts:
//
//   - cronlock.WithFailover(3): another replica takes over from one that crashes or is shut down before it has
//     enqueued.
//   - core.WithTTL(10*time.Second): the other replica does so soon. The start deadline has to be longer.
//   - cronlock.AllowOverlap(): a tick that is still being retried does not make the next one be skipped.
//
// A tick is enqueued at least once. It is enqueued a second time if a reply is lost, and the task has completed and is
// deleted before the next attempt. Guard the handler with Once(locks, ByTick()): then a tick takes effect once. Or
// keep completed tasks with [asynq.Retention] for longer than the start deadline.
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
	}
	if err := checkTask(task); err != nil {
		return 0, err
	}
	e := &enqueuer{client: client, task: task, slot: make(chan struct{}, 1)}
	defaults := []cronlock.Option{
		cronlock.WithFailover(3), core.WithTTL(10 * time.Second), cronlock.AllowOverlap(),
	}
	return cronlock.AddFunc(c, locks, spec, name, e.run, append(defaults, opts...)...)
}

// The pauses between two attempts to enqueue a task, give or take half of them.
const (
	firstEnqueuePause   = 100 * time.Millisecond
	longestEnqueuePause = 5 * time.Second
)

// enqueueTimeout bounds the attempts of a run without start deadline, that of [cronlock.JobHandle.Run].
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
