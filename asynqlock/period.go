package asynqlock

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/internal/outage"
)

// PerPeriod makes another key of a key in each period: for instance once a day for each user, however often the task
// is enqueued.
//
// Periods are those of the worker's clock when the task arrives. They count from 1970 in UTC, and each begins earlier
// than the multiple of its length: by 30 s, or by a quarter of a period shorter than 2 min. A day lasts from 23:59:30
// to 23:59:30 UTC. An hour begins 30 s before the full hour, a minute 15 s before the full minute.
//
// Why: schedulers put their ticks at full minutes. All workers whose clocks differ by less than 30 s put a task that
// arrives around a tick into the same period. The same holds for a task that waits in its queue for up to a period
// less 30 s. With periods that begin at full minutes, some runs would count as the run of the period before, and be
// lost.
//
// A task that arrives after the next period has begun belongs to that one. The next task of that period is then
// acknowledged without running, if the key is one of [Once]. Use [Enqueue] and [ByTick] where that matters: their key
// is the tick, whenever the task arrives.
//
// [Guard.Peek], [Guard.Forget] and [Guard.Resolve] reach the record of the period in which you call them. PerPeriod
// panics if the period is shorter than 1 ms, as a number without a unit is.
//
// A task that is redelivered in the next period runs again. For tasks with IDs of their own, put Once(locks,
// ByTaskID()) in front, so that a period counts for other tasks only.
func PerPeriod(key KeyFunc, period time.Duration) KeyFunc {
	mustHave("PerPeriod", key)
	if period < outage.ShortestWait {
		panic(fmt.Sprintf("holdfast: asynqlock: PerPeriod: the period is %v: at least %v is needed%s", period, outage.ShortestWait,
			outage.UnitHint(period)))
	}
	return func(ctx context.Context, t *asynq.Task) (string, error) {
		reportSelective(ctx)
		part, err := key.of(ctx, t)
		if err != nil {
			return "", err
		}
		n := periodAt(time.Now(), period)
		return join("period", period.String(), strconv.FormatInt(n, 10), part), nil
	}
}

// maxPeriodLead bounds how much earlier a period begins than the multiple of its length. It is half a minute because
// most schedules have ticks at full minutes, from which periods so begin as far away as possible. It is the default of
// cronlock.WithMaxSkew too: clocks that differ by more are broken.
const maxPeriodLead = 30 * time.Second

// periodAt returns the number of the period at an instant.
func periodAt(at time.Time, period time.Duration) int64 {
	lead := min(period/4, maxPeriodLead)
	n, rest := divmod(at.UnixNano(), int64(period))
	if rest >= int64(period-lead) {
		n++
	}
	return n
}

// divmod rounds down, so that no period around 1970 has twice the length.
func divmod(a, b int64) (quotient, rest int64) {
	quotient, rest = a/b, a%b
	if rest < 0 {
		quotient, rest = quotient-1, rest+b
	}
	return quotient, rest
}
