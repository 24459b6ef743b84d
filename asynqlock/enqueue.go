package asynqlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	guards "github.com/holdfast-go/holdfast/internal/guard"
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
	e := &enqueuer{client: client, task: task}
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

// enqueueTimeout bounds the attempts of [cronlock.JobHandle.Run], which has no start deadline.
const enqueueTimeout = time.Minute

// enqueuer enqueues the task of a job.
type enqueuer struct {
	client *asynq.Client
	task   *asynq.Task
	// mu is held while the task is being enqueued: asynq appends options to the slice that the task has, in place if there is
	// room, so that two ticks at a time could get each other's ID.
	mu sync.Mutex
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
		if err == nil || errors.Is(err, asynq.ErrTaskIDConflict) { // it is there already
			return nil
		}
		if !guards.Pause(ctx, pause/2+rand.N(pause)) {
			return fmt.Errorf("holdfast: asynqlock: job %q: not enqueued after %d attempts, %w: %w",
				run.Job, attempts, context.Cause(ctx), err)
		}
	}
}

// enqueue makes one attempt, which is bounded by the timeouts of asynq's client.
func (e *enqueuer) enqueue(ctx context.Context, id string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, err := e.client.EnqueueContext(ctx, e.task, asynq.TaskID(id))
	return err
}

// checkTask finds what is wrong with a task and its options, which asynq keeps to itself until the task is enqueued. It
// enqueues the task with a client whose commands go nowhere: asynq has accepted the options if it gets as far as the
// script that would enqueue the task, returns some of the conflicts, and has a key for [asynq.Unique].
func checkTask(task *asynq.Task) error {
	rdb := redis.NewClient(&redis.Options{MaxRetries: -1})
	defer func() { _ = rdb.Close() }()
	seen := new(recorder)
	rdb.AddHook(seen)
	info, err := asynq.NewClientFromRedisClient(rdb).Enqueue(task)
	switch {
	case seen.script == "" || err != nil:
		return fmt.Errorf("holdfast: asynqlock: the task: %w", err)
	case info.Group != "":
		return errors.New("holdfast: asynqlock: the task has the option asynq.Group, which would make one task of several " +
			"ticks, without their IDs: remove it")
	case !info.Deadline.IsZero():
		return errors.New("holdfast: asynqlock: the task has the option asynq.Deadline, which is one instant for all ticks: " +
			"use asynq.Timeout")
	case strings.Contains(seen.script, " asynq:{"+info.Queue+"}:unique:"):
		return errors.New("holdfast: asynqlock: the task has the option asynq.Unique, which would refuse a tick while the task " +
			"of an earlier one waits: remove it, the task ID identifies the tick")
	}
	return nil
}

// recorder is a hook of a client that connects to nothing. It keeps the keys of the last script, and lets every command succeed.
type recorder struct{ script string }

// DialHook lets no connection be made.
func (*recorder) DialHook(redis.DialHook) redis.DialHook {
	return func(context.Context, string, string) (net.Conn, error) { return nil, redis.ErrClosed }
}

// ProcessHook records a script.
func (r *recorder) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		if script, ok := cmd.(*redis.Cmd); ok {
			r.script = script.String()
			script.SetVal(int64(1)) // enqueued
		}
		return nil
	}
}

// ProcessPipelineHook executes nothing.
func (*recorder) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(context.Context, []redis.Cmder) error { return redis.ErrClosed }
}
