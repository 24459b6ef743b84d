package asynqlock

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hibiken/asynq"
)

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
