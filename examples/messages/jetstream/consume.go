// Package jetstream consumes a stream of NATS JetStream. A delivery expires after the AckWait of the consumer, so give the guard
// [Heartbeat].
package jetstream

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-go/holdfast/msglock"
)

// Heartbeat tells the server that a message is still being handled. Its interval is a third of the AckWait.
func Heartbeat(ackWait time.Duration) msglock.Option {
	return msglock.WithHeartbeat(ackWait/3, func(_ context.Context, m jetstream.Msg) error { return m.InProgress() })
}

// Consumer takes messages from a durable consumer, whose AckPolicy is explicit.
type Consumer struct {
	JetStream jetstream.JetStream
	Consumer  jetstream.Consumer
	Parked    string // the subject of messages for a person
	Handle    func(context.Context, jetstream.Msg) error
}

// Run handles messages until ctx ends. The AckWait of a message begins when it is sent, so one that has waited here for too long is
// left to be delivered again.
func (c *Consumer) Run(ctx context.Context) error {
	wait := c.Consumer.CachedInfo().Config.AckWait
	for ctx.Err() == nil {
		taken := time.Now()
		batch, err := c.Consumer.Fetch(10, jetstream.FetchMaxWait(min(wait/4, time.Second)))
		if err != nil {
			pause(ctx, 100*time.Millisecond) // the broker is away
			continue
		}
		for m := range batch.Messages() {
			if time.Since(taken) < wait/2 {
				c.handle(ctx, m)
			}
		}
	}
	return ctx.Err()
}

// handle handles a message. What is not acknowledged comes again after the AckWait, and its guard acknowledges it then.
func (c *Consumer) handle(ctx context.Context, m jetstream.Msg) {
	switch action, delay := msglock.Disposition(c.Handle(ctx, m)); action {
	case msglock.Ack:
		_ = m.DoubleAck(ctx)
	case msglock.Nack:
		_ = m.NakWithDelay(delay)
	case msglock.Park:
		if _, err := c.JetStream.Publish(ctx, c.Parked, m.Data()); err == nil {
			_ = m.TermWithReason("parked")
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
