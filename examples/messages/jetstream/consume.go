// Package jetstream consumes a stream of NATS JetStream. A delivery expires after the AckWait of the consumer, so give the guard
// [Heartbeat].
package jetstream

import (
	"context"
	"log/slog"
	"maps"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-go/holdfast/examples/messages/grace"
	"github.com/holdfast-go/holdfast/msglock"
)

// Heartbeat reports to the server that a message is still being handled. Its interval is a third of the AckWait.
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

// Run handles messages until ctx ends, and finishes the one that is being handled then. The AckWait of a message begins
// when it is sent, so one that has waited here for too long is left to be delivered again.
func (c *Consumer) Run(ctx context.Context) error {
	work, cancel := grace.Context(ctx, grace.Period)
	defer cancel()
	wait := c.Consumer.CachedInfo().Config.AckWait
	for ctx.Err() == nil {
		taken := time.Now()
		batch, err := c.Consumer.Fetch(10, jetstream.FetchMaxWait(min(wait/4, time.Second)))
		if err != nil {
			pause(ctx, 100*time.Millisecond) // the broker is unreachable
			continue
		}
		for m := range batch.Messages() {
			if time.Since(taken) < wait/2 && ctx.Err() == nil {
				c.handle(work, m)
			}
		}
	}
	return ctx.Err()
}

// handle handles a message. What is not acknowledged comes again after the AckWait, and its guard acknowledges it then.
func (c *Consumer) handle(ctx context.Context, m jetstream.Msg) {
	reason := c.Handle(ctx, m)
	switch action, delay := msglock.Disposition(reason); action {
	case msglock.Ack:
		_ = m.DoubleAck(ctx)
	case msglock.Nack:
		_ = m.NakWithDelay(delay)
	case msglock.Park:
		parked := &nats.Msg{Subject: c.Parked, Data: m.Data(), Header: nats.Header{}}
		maps.Copy(parked.Header, m.Headers())
		parked.Header.Del(jetstream.MsgIDHeader) // else a stream that has both subjects drops the copy as a duplicate
		parked.Header.Set("Parked-Reason", strings.ReplaceAll(reason.Error(), "\n", " "))
		if _, err := c.JetStream.PublishMsg(ctx, parked); err != nil {
			slog.ErrorContext(ctx, "message not parked, it comes again", "subject", m.Subject(), "error", err)
			return
		}
		_ = m.TermWithReason("parked")
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
