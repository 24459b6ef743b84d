package asynqlock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hibiken/asynq"

	guards "github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/jsonfield"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// KeyFunc makes the key of a task: tasks with equal keys exclude each other, or count as one. If it returns an empty
// key or an error, the task has no key, see [ErrNoKey]. Several goroutines may call it at once. Only a hash of the key
// reaches Redis, logs and hooks. A function that calls another KeyFunc passes its context on, for [ComparePayload].
type KeyFunc func(ctx context.Context, t *asynq.Task) (string, error)

// ErrNoKey says that a task lacks the parts of its key. A retry would not add them, so the task is archived, see
// [OptionalKey].
var ErrNoKey = errors.New("holdfast: asynqlock: no key in the task")

// ByTaskID makes a key of queue and task ID. It recognises a task that is redelivered, for tasks whose IDs are made by
// asynq. Two tasks that were enqueued for one thing have two IDs: see [ByPayload] and [ByHeader]. asynq allows one ID
// in two queues, which therefore are two keys.
//
// Do not use it with [Once] for periodic tasks with a fixed [asynq.TaskID], which keeps several schedulers from
// enqueuing a task twice. All runs have one ID: the first one runs, and the others are acknowledged without running
// while its record exists ([core.WithRetention]). The log warns of that. Use [Enqueue] with [ByTick], or [PerPeriod].
func ByTaskID() KeyFunc {
	return func(ctx context.Context, t *asynq.Task) (string, error) {
		task := taskOf(ctx)
		if task.ID == "" {
			return "", fmt.Errorf("%w: the context does not belong to an asynq handler", ErrNoKey)
		}
		return guards.Hash(nil, "task", task.Queue, task.ID), nil
	}
}

// ByPayload makes a key of fields of a payload in JSON: names of the outermost object ("user_id") or RFC 6901 pointers
// ("/user/id"). All fields must exist, as strings, numbers or booleans; otherwise see [ErrNoKey]. A string may be empty, if not
// all fields are. The string "1" and the number 1 make two keys, and so do 1 and 1.0.
//
// Only the fields decide whether two tasks are one: the rest of the payload may differ, see [ComparePayload].
//
// Without fields it is a key of the type and of the whole payload, byte for byte, which need not be JSON. Do not use
// that for periodic tasks that always have the same payload: see [ByTaskID].
//
// ByPayload panics if a field is no pointer.
func ByPayload(fields ...string) KeyFunc {
	pointers := make([]string, len(fields))
	for i, field := range fields {
		pointers[i] = pointer(field)
		if err := jsonfield.CheckPointer(pointers[i]); err != nil {
			panic(err)
		}
	}
	return func(ctx context.Context, t *asynq.Task) (string, error) {
		if len(pointers) == 0 {
			return guards.Hash(nil, "payload", t.Type(), string(t.Payload())), nil
		}
		reportSelective(ctx)
		parts, empty := []string{"fields"}, true
		for _, p := range pointers {
			value, err := jsonfield.Find(t.Payload(), p)
			if err != nil {
				return "", fmt.Errorf("%w: payload: %w", ErrNoKey, err)
			}
			parts, empty = append(parts, p, value), empty && value == "string:"
		}
		if empty {
			return "", fmt.Errorf("%w: payload: only empty strings at %q", ErrNoKey, pointers)
		}
		return guards.Hash(nil, parts...), nil
	}
}

// pointer makes a pointer of the name of a field.
func pointer(field string) string {
	if field == "" || strings.HasPrefix(field, "/") {
		return field
	}
	return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(field)
}

// ByHeader makes a key of a header of the task, see [asynq.NewTaskWithHeaders]: for instance "Idempotency-Key", which
// a producer repeats when it retries. Names are case-sensitive.
func ByHeader(name string) KeyFunc {
	if name == "" {
		panic("holdfast: asynqlock: ByHeader: the name is empty")
	}
	return func(_ context.Context, t *asynq.Task) (string, error) {
		value := t.Headers()[name]
		if value == "" {
			return "", fmt.Errorf("%w: header %s is empty", ErrNoKey, name)
		}
		return guards.Hash(nil, "header", name, value), nil
	}
}

// ByType makes a key of the type: for [Keys], and to run one task of a type at a time.
func ByType() KeyFunc {
	return func(_ context.Context, t *asynq.Task) (string, error) { return guards.Hash(nil, "type", t.Type()), nil }
}

// Keys joins keys so that no two lists of parts make the same one. If a part is missing, the whole key is missing.
func Keys(keys ...KeyFunc) KeyFunc {
	keys = guards.KeyFuncs("asynqlock: Keys", keys)
	return func(ctx context.Context, t *asynq.Task) (string, error) {
		parts := make([]string, len(keys))
		for i, key := range keys {
			part, err := key.of(ctx, t)
			if err != nil {
				return "", err
			}
			parts[i] = part
		}
		return guards.Hash(nil, parts...), nil
	}
}

// of makes the key, or tells why there is none.
func (f KeyFunc) of(ctx context.Context, t *asynq.Task) (string, error) {
	key, err := f.call(ctx, t)
	switch {
	case err != nil && !errors.Is(err, ErrNoKey):
		return "", guards.KeyFailed(fmt.Errorf("%w: %w", ErrNoKey, err))
	case err == nil && key == "":
		return "", fmt.Errorf("%w: it is empty", ErrNoKey)
	}
	return key, err
}

func (f KeyFunc) call(ctx context.Context, t *asynq.Task) (key string, err error) {
	defer guards.Recovered(&err)
	return f(ctx, t)
}

// PerPeriod makes another key of a key in each period: for instance once a day for each user, however often the task
// is enqueued.
//
// The period is the one in which the task arrives, by the worker's clock. Periods count from 1970 in UTC, and each begins earlier
// than the multiple of its length: by 30 s, or by a quarter of a period shorter than 2 min. So a day lasts from 23:59:30 to 23:59:30
// UTC. Schedulers put their ticks at full minutes, so all workers whose clocks differ by less than 30 s put a task that arrives around
// a tick, or has waited in its queue for up to a period less 30 s, into the same period.
//
// A task that arrives after the next period has begun belongs to that one. The next task of that period is then acknowledged without
// running, if the key is one of [Once], and a redelivered task of the period before runs again. Use [Enqueue] and [ByTick] where that
// matters: their key is the tick, whenever the task arrives. Or put Once(locks, ByTaskID()) in front, for tasks with IDs of their own.
//
// [Guard.Peek], [Guard.Forget] and [Guard.Resolve] reach the record of the period in which you call them. PerPeriod panics if the
// period is shorter than 1 ms, as a number without a unit is.
func PerPeriod(key KeyFunc, period time.Duration) KeyFunc {
	guards.KeyFuncs("asynqlock: PerPeriod", []KeyFunc{key})
	if period < guards.ShortestWait {
		panic(fmt.Sprintf("holdfast: asynqlock: PerPeriod: the period is %v: at least %v is needed%s", period, guards.ShortestWait,
			seal.UnitHint(period)))
	}
	return func(ctx context.Context, t *asynq.Task) (string, error) {
		reportSelective(ctx)
		part, err := key.of(ctx, t)
		if err != nil {
			return "", err
		}
		n := periodAt(time.Now(), period)
		return guards.Hash(nil, "period", period.String(), strconv.FormatInt(n, 10), part), nil
	}
}

// maxPeriodLead bounds how much earlier a period begins than the multiple of its length. It is half a minute because
// most schedules have ticks at full minutes, from which periods so begin as far away as possible. It is the default of
// cronlock.WithMaxSkew too: clocks that differ by more are broken.
const maxPeriodLead = 30 * time.Second

// periodAt returns the number of the period at an instant.
func periodAt(at time.Time, period time.Duration) int64 {
	since := at.Add(min(period/4, maxPeriodLead)).UnixNano()
	n := since / int64(period)
	if since%int64(period) < 0 { // rounded up, before 1970
		n--
	}
	return n
}

// ByTick makes a key of job and tick, for tasks that [Enqueue] has enqueued: one key for each tick, the same in every
// queue and for every delivery, whenever it arrives. A task with another ID has no key, see [ErrNoKey] and
// [OptionalKey].
func ByTick() KeyFunc {
	return func(ctx context.Context, t *asynq.Task) (string, error) {
		reportSelective(ctx)
		job, tick, ok := TickFrom(ctx)
		if !ok {
			return "", fmt.Errorf("%w: the task was not enqueued by Enqueue: its ID names no tick", ErrNoKey)
		}
		return guards.Hash(nil, "tick", job, tick.Format(time.RFC3339Nano)), nil
	}
}

// TickFrom returns the name of the job and the tick for which [Enqueue] has enqueued the task of ctx. It returns false
// if the task is not from Enqueue, or if ctx is not a handler's. The tick is the time on the schedule, in UTC.
// Use it instead of the present time for the subject of a task ("the report of yesterday"), since a task may run late.
func TickFrom(ctx context.Context) (job string, tick time.Time, ok bool) {
	return parseTickID(taskOf(ctx).ID)
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

type selectiveKey struct{}

// reportSelective reports to the guard that calls a key function that its key names what makes two tasks one, so that the rest of
// the payload may differ. It does so through the context because a [KeyFunc] returns the key alone, and because that passes
// through [Keys] and functions of the user.
func reportSelective(ctx context.Context) {
	if selective, ok := ctx.Value(selectiveKey{}).(*bool); ok {
		*selective = true
	}
}
