// Package pubsub consumes a subscription of Google Cloud Pub/Sub. Its client extends the deadline of a delivery itself, so the guard needs
// no heartbeat.
package pubsub

import (
	"context"

	"cloud.google.com/go/pubsub/v2"

	"github.com/holdfast-go/holdfast/msglock"
)

// Key is the ID that the producer has set, for a Key of msglock: the ID of a message is new when the producer publishes again.
func Key(_ context.Context, m *pubsub.Message) (string, error) { return m.Attributes["id"], nil }

// Consume handles messages until ctx ends. The retry policy of the subscription decides when a message comes again. parked is the
// topic of messages for a person.
func Consume(
	ctx context.Context, subscriber *pubsub.Subscriber, parked *pubsub.Publisher, handle func(context.Context, *pubsub.Message) error,
) error {
	return subscriber.Receive(ctx, func(ctx context.Context, m *pubsub.Message) {
		action, _ := msglock.Disposition(handle(ctx, m))
		if action == msglock.Park {
			copied := &pubsub.Message{Data: m.Data, Attributes: m.Attributes}
			if _, err := parked.Publish(ctx, copied).Get(ctx); err != nil {
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
