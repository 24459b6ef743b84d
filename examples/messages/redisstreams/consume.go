// Package redisstreams consumes a Redis stream with a consumer group. Entries of a consumer that has died, or that were not
// acknowledged, are taken over by XAUTOCLAIM.
package redisstreams

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/msglock"
)

// Consumer is one consumer of a group.
type Consumer struct {
	Redis               redis.UniversalClient
	Stream, Group, Name string
	Idle                time.Duration // after which an entry that was not acknowledged is delivered again
	Parked              string        // the stream of messages for a person
	Handle              func(context.Context, redis.XMessage) error
}

// Heartbeat is an option of the guard: while a message is being handled, it is not idle.
func (c *Consumer) Heartbeat() msglock.Option {
	return msglock.WithHeartbeat(c.Idle/3, func(ctx context.Context, m redis.XMessage) error {
		return c.Redis.XClaimJustID(ctx, &redis.XClaimArgs{Stream: c.Stream, Group: c.Group, Consumer: c.Name, Messages: []string{m.ID}}).Err()
	})
}

// Run handles messages until ctx ends.
func (c *Consumer) Run(ctx context.Context) error {
	err := c.Redis.XGroupCreateMkStream(ctx, c.Stream, c.Group, "0").Err()
	if err != nil && !redis.HasErrorPrefix(err, "BUSYGROUP") {
		return err
	}
	for ctx.Err() == nil {
		if !c.take(ctx) {
			pause(ctx, 100*time.Millisecond) // the broker is away
		}
	}
	return ctx.Err()
}

// take handles what others have left, and then what is new.
func (c *Consumer) take(ctx context.Context) bool {
	taken := time.Now()
	left, _, err := c.Redis.XAutoClaim(ctx, &redis.XAutoClaimArgs{
		Stream: c.Stream, Group: c.Group, Consumer: c.Name, MinIdle: c.Idle, Start: "0", Count: 10,
	}).Result()
	if err != nil {
		return false
	}
	c.handle(ctx, taken, left)
	taken = time.Now()
	streams, err := c.Redis.XReadGroup(ctx, &redis.XReadGroupArgs{
		Group: c.Group, Consumer: c.Name, Streams: []string{c.Stream, ">"}, Count: 10, Block: min(c.Idle/4, time.Second),
	}).Result()
	for _, stream := range streams {
		c.handle(ctx, taken, stream.Messages)
	}
	return err == nil || errors.Is(err, redis.Nil)
}

// handle handles messages that were delivered after some time. Those that have waited here for too long may belong to another
// consumer by now.
func (c *Consumer) handle(ctx context.Context, taken time.Time, messages []redis.XMessage) {
	for _, m := range messages {
		if time.Since(taken) > c.Idle/2 {
			return
		}
		action, _ := msglock.Disposition(c.Handle(ctx, m))
		if action == msglock.Nack {
			continue // it stays pending, and is claimed when it has been idle for long enough
		}
		if action == msglock.Park && c.Redis.XAdd(ctx, &redis.XAddArgs{Stream: c.Parked, Values: m.Values}).Err() != nil {
			continue
		}
		// An entry that is not acknowledged comes again, and its guard acknowledges it then.
		_ = c.Redis.XAck(ctx, c.Stream, c.Group, m.ID).Err()
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
