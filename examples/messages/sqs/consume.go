// Package sqs consumes a queue of Amazon SQS. A delivery expires after its visibility timeout, so give the guard [Heartbeat].
package sqs

import (
	"context"
	"log/slog"
	"maps"
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/holdfast-go/holdfast/examples/messages/grace"
	"github.com/holdfast-go/holdfast/msglock"
)

// Consumer takes messages from a queue.
type Consumer struct {
	Client        *sqs.Client
	Queue, Parked string        // URLs: the queue, and the one for messages that a person has to look at
	Visibility    time.Duration // the visibility timeout of deliveries
	Handle        func(ctx context.Context, batch []types.Message) []error
}

// Heartbeat extends the visibility timeout of a message while it waits or is being handled.
func (c *Consumer) Heartbeat() msglock.Option {
	return msglock.WithHeartbeat(c.Visibility/3, func(ctx context.Context, m types.Message) error { return c.visible(ctx, m, c.Visibility) })
}

// Key is the ID that the producer has set, for a Key of msglock: a queue that is not FIFO may deliver a message twice, and its
// MessageId is new when the producer sends again.
func Key(_ context.Context, m types.Message) (string, error) {
	if id, ok := m.MessageAttributes["id"]; ok && id.StringValue != nil {
		return *id.StringValue, nil
	}
	return "", nil
}

// Run handles messages until ctx ends, and finishes those that are being handled then.
func (c *Consumer) Run(ctx context.Context) error {
	work, cancel := grace.Context(ctx, grace.Period)
	defer cancel()
	for ctx.Err() == nil {
		got, err := c.Client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: &c.Queue, MaxNumberOfMessages: 10, WaitTimeSeconds: 20, MessageAttributeNames: []string{"All"},
			VisibilityTimeout: seconds(c.Visibility),
		})
		if err != nil {
			pause(ctx, time.Second)
			continue
		}
		for i, err := range c.Handle(work, got.Messages) {
			c.settle(work, got.Messages[i], err)
		}
	}
	return ctx.Err()
}

// settle says what becomes of a message. What is not deleted comes again, and its guard lets it be deleted then.
func (c *Consumer) settle(ctx context.Context, m types.Message, reason error) {
	action, delay := msglock.Disposition(reason)
	if action == msglock.Nack {
		_ = c.visible(ctx, m, delay)
		return
	}
	if action == msglock.Park {
		attributes := maps.Clone(m.MessageAttributes)
		if attributes == nil {
			attributes = make(map[string]types.MessageAttributeValue)
		}
		if len(attributes) < 10 { // SQS takes no more
			attributes["parked.reason"] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(reason.Error())}
		}
		_, err := c.Client.SendMessage(ctx, &sqs.SendMessageInput{
			QueueUrl: &c.Parked, MessageBody: m.Body, MessageAttributes: attributes,
		})
		if err != nil {
			slog.ErrorContext(ctx, "message not parked, it comes again", "queue", c.Queue, "error", err)
			return
		}
	}
	_, _ = c.Client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &c.Queue, ReceiptHandle: m.ReceiptHandle})
}

func (c *Consumer) visible(ctx context.Context, m types.Message, timeout time.Duration) error {
	_, err := c.Client.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
		QueueUrl: &c.Queue, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: seconds(timeout),
	})
	return err
}

func seconds(d time.Duration) int32 { return int32(math.Ceil(d.Seconds())) }

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
