package asynqlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
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

// ByTick makes a key of job and tick, for tasks that [Enqueue] has enqueued: one key for each tick, the same in every
// queue and for every delivery, whenever it arrives. A task with another ID has no key, see [ErrNoKey] and
// [OptionalKey].
func ByTick() KeyFunc {
	return func(ctx context.Context, t *asynq.Task) (string, error) {
		reportSelective(ctx)
		job, tick, ok := TickFrom(ctx)
		if !ok {
			return "", fmt.Errorf("%w: the task was not enqueued by Enqueue: its ID is not that of a tick", ErrNoKey)
		}
		return join("tick", job, tick.Format(time.RFC3339Nano)), nil
	}
}

// TickFrom returns the name of the job and the tick for which [Enqueue] has enqueued the task of ctx. It returns false
// if the task is not from Enqueue, or if ctx is not that of a handler. The tick is the time on the schedule, in UTC.
// Use it instead of the present time for the subject of a task ("the report of yesterday"), since a task may run late.
func TickFrom(ctx context.Context) (job string, tick time.Time, ok bool) {
	task, given := ctx.Value(taskKey{}).(taskInfo)
	if !given {
		task.ID, _ = asynq.GetTaskID(ctx)
	}
	return parseTickID(task.ID)
}

// tickIDPrefix keeps the IDs of ticks apart from others.
const tickIDPrefix = "cron:"

// tickID is the task ID of a tick. It is the same on all replicas, and asynq refuses a second task with it.
func tickID(job string, tick time.Time) string {
	return tickIDPrefix + job + ":" + tick.UTC().Format(time.RFC3339Nano)
}

// parseTickID is the inverse of tickID. The name of a job may have colons; the time has two of its own. Only what
// tickID itself would write is a tick, so that no two IDs make one key.
func parseTickID(id string) (job string, tick time.Time, ok bool) {
	end := len(id)
	for range 3 {
		if end = strings.LastIndexByte(id[:end], ':'); end < 0 {
			return "", time.Time{}, false
		}
	}
	tick, err := time.Parse(time.RFC3339Nano, id[end+1:])
	job, found := strings.CutPrefix(id[:end], tickIDPrefix)
	if err != nil || !found || job == "" || tickID(job, tick) != id {
		return "", time.Time{}, false
	}
	return job, tick.UTC(), true
}

// checkTask finds what is wrong with a task and its options, which asynq keeps to itself until the task is enqueued. It
// enqueues the task with a client whose commands go nowhere: asynq has accepted the options if it gets as far as the
// script that would enqueue the task, tells of some in what it returns, and has a key for [asynq.Unique].
func checkTask(task *asynq.Task) error {
	rdb := redis.NewClient(&redis.Options{MaxRetries: -1})
	defer func() { _ = rdb.Close() }()
	seen := &scriptRecorder{}
	rdb.AddHook(seen)
	info, err := asynq.NewClientFromRedisClient(rdb).Enqueue(task)
	switch {
	case seen.args == nil || err != nil:
		return fmt.Errorf("holdfast: asynqlock: the task: %w", err)
	case info.Group != "":
		return errors.New("holdfast: asynqlock: the task has the option asynq.Group, which would make one task of several " +
			"ticks, without their IDs: remove it")
	case !info.Deadline.IsZero():
		return errors.New("holdfast: asynqlock: the task has the option asynq.Deadline, which is one instant for all ticks: " +
			"use asynq.Timeout")
	case seen.has("}:unique:"):
		return errors.New("holdfast: asynqlock: the task has the option asynq.Unique, which would refuse a tick while the task " +
			"of an earlier one waits: remove it, the task ID identifies the tick")
	}
	return nil
}

// scriptRecorder is a hook that executes nothing and keeps the arguments of the last script.
type scriptRecorder struct{ args []any }

var errNotExecuted = errors.New("not executed")

// DialHook lets no connection be made.
func (*scriptRecorder) DialHook(redis.DialHook) redis.DialHook {
	return func(context.Context, string, string) (net.Conn, error) { return nil, errNotExecuted }
}

// ProcessHook records a script and lets every command succeed, since asynq sends some before.
func (s *scriptRecorder) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		if !strings.HasPrefix(cmd.Name(), "eval") {
			return nil
		}
		s.args = cmd.Args()
		if script, ok := cmd.(*redis.Cmd); ok {
			script.SetVal(int64(1)) // enqueued
		}
		return nil
	}
}

// ProcessPipelineHook executes nothing.
func (*scriptRecorder) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(context.Context, []redis.Cmder) error { return errNotExecuted }
}

// has reports whether an argument contains a text.
func (s *scriptRecorder) has(text string) bool {
	for _, arg := range s.args {
		if arg, ok := arg.(string); ok && strings.HasPrefix(arg, "asynq:{") && strings.Contains(arg, text) {
			return true
		}
	}
	return false
}
