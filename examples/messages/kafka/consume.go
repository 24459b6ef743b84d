// Package kafka consumes topics of Kafka with franz-go. Kafka has no acknowledgement of one message: a committed offset acknowledges
// all before it. So a partition stops at a message that has to come again, and nothing behind it is committed.
package kafka

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/holdfast-go/holdfast/msglock"
)

// Consumer is one member of a consumer group. Make its client with Options.
type Consumer struct {
	Client *kgo.Client
	Parked string // the topic of messages for a person
	Handle func(context.Context, []*kgo.Record) []error
}

// Options are those that the consumer needs of its client, beside brokers, group and topics. The group may rebalance only between
// two polls, so that no partition is handled here after another member has it. Only what is marked is committed.
func Options() []kgo.Opt {
	return []kgo.Opt{kgo.AutoCommitMarks(), kgo.BlockRebalanceOnPoll()}
}

// Run handles messages until ctx ends.
func (c *Consumer) Run(ctx context.Context) error {
	defer c.Client.AllowRebalance()
	for ctx.Err() == nil {
		fetches := c.Client.PollRecords(ctx, 100)
		if fetches.IsClientClosed() {
			return kgo.ErrClientClosed
		}
		var partitions sync.WaitGroup
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			if len(p.Records) > 0 {
				partitions.Go(func() { c.partition(ctx, p.Records) })
			}
		})
		partitions.Wait()
		// After an error the client commits what is marked a few seconds later, or another member gets the messages again: their guard
		// acknowledges them then.
		_ = c.Client.CommitMarkedOffsets(ctx)
		c.Client.AllowRebalance()
	}
	return ctx.Err()
}

// partition handles records of one partition in their order. It marks those before the first one that has to come again, and has the
// partition read again from there.
func (c *Consumer) partition(ctx context.Context, records []*kgo.Record) {
	done := records
	var delay time.Duration
	for i, err := range c.Handle(ctx, records) {
		action, after := msglock.Disposition(err)
		if action == msglock.Park && c.park(ctx, records[i]) != nil {
			action = msglock.Nack
		}
		if action == msglock.Nack {
			done, delay = records[:i], after
			break
		}
	}
	c.Client.MarkCommitRecords(done...)
	if len(done) == len(records) {
		return
	}
	first := records[len(done)]
	pause(ctx, max(delay, 100*time.Millisecond))
	c.Client.SetOffsets(map[string]map[int32]kgo.EpochOffset{
		first.Topic: {first.Partition: {Epoch: -1, Offset: first.Offset}},
	})
}

func (c *Consumer) park(ctx context.Context, r *kgo.Record) error {
	return c.Client.ProduceSync(ctx, &kgo.Record{Topic: c.Parked, Key: r.Key, Value: r.Value, Headers: r.Headers}).FirstErr()
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
