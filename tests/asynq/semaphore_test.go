package asynq_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// semaphore is a control: at most one task of a payload runs, by a set of task IDs that expire with the deadlines of the
// tasks, as in asynq's package x/rate, which refuses the clients that asynq 0.26 makes. A task that is refused comes again
// within ten seconds and burns no retry.
func semaphore(rdb redis.UniversalClient) asynq.MiddlewareFunc {
	return func(next asynq.Handler) asynq.Handler {
		return asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
			id, _ := asynq.GetTaskID(ctx)
			key, deadline := "semaphore:"+string(t.Payload()), time.Now().Add(time.Minute).Unix()
			free, err := semaphoreScript.Run(ctx, rdb, []string{key}, time.Now().Unix(), deadline, id).Bool()
			if err != nil {
				return err
			}
			if !free {
				refusals.Add(1)
				return errRefused
			}
			defer rdb.ZRem(context.WithoutCancel(ctx), key, id)
			return next.ProcessTask(ctx, t)
		})
	}
}

var (
	errRefused      = errors.New("the semaphore is taken")
	refusals        atomic.Int64
	semaphoreScript = redis.NewScript(`
redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, ARGV[1])
if redis.call('ZCARD', KEYS[1]) > 0 then
  return 0
end
return redis.call('ZADD', KEYS[1], ARGV[2], ARGV[3])
`)
)

func notRefused(err error) bool { return !errors.Is(err, errRefused) }

func refusedDelay(n int, err error, t *asynq.Task) time.Duration {
	if errors.Is(err, errRefused) {
		return rand.N(10 * time.Second)
	}
	return asynq.DefaultRetryDelayFunc(n, err, t)
}
