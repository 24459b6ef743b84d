// Package pubsub consumes a subscription of Google Cloud Pub/Sub. Its client extends the deadline of a delivery itself,
// so the guard needs no heartbeat.
package pubsub

import (
	"context"
	"log/slog"
	"maps"

	"cloud.google.com/go/pubsub/v2"

	"github.com/holdfast-go/holdfast/examples/messages/grace"
	"github.com/holdfast-go/holdfast/msglock"
)

// Key is the ID that the producer has set, for a Key of msglock: the ID of a message is new when the producer publishes again.
func Key(_ context.Context, m *pubsub.Message) (string, error) { return m.Attributes["id"], nil }

// Consume handles messages until ctx ends, and finishes those that are being handled then. The retry policy of the
// subscription decides when a message comes again. parked is the topic of messages for a person.
func Consume(
	ctx context.Context, subscriber *pubsub.Subscriber, parked *pubsub.Publisher, handle func(context.Context, *pubsub.Message) error,
) error {
	return subscriber.Receive(ctx, func(ctx context.Context, m *pubsub.Message) {
		work, cancel := grace.Context(ctx, grace.Period)
		defer cancel()
		reason := handle(work, m)
		action, _ := msglock.Disposition(reason)
		if action == msglock.Park {
			attributes := map[string]string{"parked.reason": reason.Error(), "parked.id": m.ID}
			maps.Copy(attributes, m.Attributes)
			if _, err := parked.Publish(work, &pubsub.Message{Data: m.Data, Attributes: attributes}).Get(work); err != nil {
				slog.ErrorContext(work, "message not parked, it comes again", "id", m.ID, "error", err)
				action = msglock.Nack
			}
		}
		if action == msglock.Nack {
			m.Nack()
			return
		}
		m.Ack()
	})
}
