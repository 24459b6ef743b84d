// Package redisstreams consumes a Redis stream with a consumer group. Entries of a consumer that has died, or that were not
// acknowledged, are taken over by XAUTOCLAIM.
package redisstreams

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/examples/messages/grace"
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

// Run handles messages until ctx ends, and finishes the one that is being handled then.
func (c *Consumer) Run(ctx context.Context) error {
	err := c.Redis.XGroupCreateMkStream(ctx, c.Stream, c.Group, "0").Err()
	if err != nil && !redis.HasErrorPrefix(err, "BUSYGROUP") {
		return err
	}
	work, cancel := grace.Context(ctx, grace.Period)
	defer cancel()
	for ctx.Err() == nil {
		if !c.take(ctx, work) {
			pause(ctx, 100*time.Millisecond) // the broker is unreachable
		}
	}
	return ctx.Err()
}

// take handles what others have left, and then what is new.
func (c *Consumer) take(ctx, work context.Context) bool {
	taken := time.Now()
	left, _, err := c.Redis.XAutoClaim(ctx, &redis.XAutoClaimArgs{
		Stream: c.Stream, Group: c.Group, Consumer: c.Name, MinIdle: c.Idle, Start: "0", Count: 10,
	}).Result()
	if err != nil {
		return false
	}
	c.handle(ctx, work, taken, left)
	taken = time.Now()
	streams, err := c.Redis.XReadGroup(ctx, &redis.XReadGroupArgs{
		Group: c.Group, Consumer: c.Name, Streams: []string{c.Stream, ">"}, Count: 10, Block: min(c.Idle/4, time.Second),
	}).Result()
	for _, stream := range streams {
		c.handle(ctx, work, taken, stream.Messages)
	}
	return err == nil || errors.Is(err, redis.Nil)
}

// handle handles messages that were delivered after some time. Those that have waited here for too long may belong to another
// consumer by now.
func (c *Consumer) handle(ctx, work context.Context, taken time.Time, messages []redis.XMessage) {
	for _, m := range messages {
		if time.Since(taken) > c.Idle/2 || ctx.Err() != nil {
			return
		}
		reason := c.Handle(work, m)
		action, _ := msglock.Disposition(reason)
		if action == msglock.Nack {
			continue // it stays pending, and is claimed when it has been idle for long enough
		}
		if action == msglock.Park {
			if err := c.park(work, m, reason); err != nil {
				slog.ErrorContext(ctx, "message not parked, it comes again", "stream", c.Stream, "id", m.ID, "error", err)
				continue
			}
		}
		// An entry that is not acknowledged comes again, and its guard acknowledges it then.
		_ = c.Redis.XAck(work, c.Stream, c.Group, m.ID).Err()
	}
}

// park copies an entry to the stream of messages for a person, with the reason and where it was.
func (c *Consumer) park(ctx context.Context, m redis.XMessage, reason error) error {
	values := map[string]any{"parked.reason": reason.Error(), "parked.stream": c.Stream, "parked.id": m.ID}
	maps.Copy(values, m.Values)
	return c.Redis.XAdd(ctx, &redis.XAddArgs{Stream: c.Parked, Values: values}).Err()
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
