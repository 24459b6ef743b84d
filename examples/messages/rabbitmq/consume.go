// Package rabbitmq consumes a queue of RabbitMQ. A message to be parked is rejected, and goes to the dead-letter
// exchange of its queue.
package rabbitmq

import (
	"context"
	"errors"
	"log/slog"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/holdfast-go/holdfast/examples/messages/grace"
	"github.com/holdfast-go/holdfast/msglock"
)

// Declare declares a queue, and the queue of its dead letters for a person to look at.
func Declare(channel *amqp.Channel, queue string) error {
	parked := queue + ".parked"
	if _, err := channel.QueueDeclare(parked, true, false, false, false, nil); err != nil {
		return err
	}
	_, err := channel.QueueDeclare(queue, true, false, false, false, amqp.Table{
		"x-dead-letter-exchange": "", "x-dead-letter-routing-key": parked,
	})
	return err
}

// Consumer takes messages from a queue.
type Consumer struct {
	Dial   func() (*amqp.Connection, error)
	Queue  string
	Handle func(context.Context, amqp.Delivery) error
}

// Run handles messages until ctx ends, and finishes the one that is being handled then. It connects again when a
// connection is lost: RabbitMQ delivers again then what was not acknowledged.
func (c *Consumer) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		_ = c.connected(ctx)
		pause(ctx, 100*time.Millisecond)
	}
	return ctx.Err()
}

func (c *Consumer) connected(ctx context.Context) error {
	conn, err := c.Dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	channel, err := conn.Channel()
	if err != nil {
		return err
	}
	err = errors.Join(channel.Qos(10, 0, false), Declare(channel, c.Queue))
	if err != nil {
		return err
	}
	deliveries, err := channel.ConsumeWithContext(ctx, c.Queue, "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	work, cancel := grace.Context(ctx, grace.Period)
	defer cancel()
	for d := range deliveries {
		if ctx.Err() == nil { // RabbitMQ delivers the others again
			c.handle(work, d)
		}
	}
	return nil
}

func (c *Consumer) handle(ctx context.Context, d amqp.Delivery) {
	reason := c.Handle(ctx, d)
	switch action, delay := msglock.Disposition(reason); action {
	case msglock.Ack:
		_ = d.Ack(false)
	case msglock.Nack:
		pause(ctx, max(delay, 100*time.Millisecond)) // RabbitMQ knows no delay, and would deliver it again at once
		_ = d.Nack(false, true)
	case msglock.Park:
		slog.ErrorContext(ctx, "message parked", "queue", c.Queue, "reason", reason) // a dead letter cannot have it
		_ = d.Reject(false)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
