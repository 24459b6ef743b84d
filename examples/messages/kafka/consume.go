// Package kafka consumes topics of Kafka with franz-go. Kafka has no acknowledgement of one message: a committed offset acknowledges
// all before it. So a partition stops at a message that has to come again, and nothing behind it is committed.
package kafka

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/examples/messages/grace"
	"github.com/holdfast-go/holdfast/msglock"
)

// retryDelay is how long a partition waits at a message whose handler has failed.
const retryDelay = time.Second

// Consumer is one member of a consumer group. Make its client with Options.
type Consumer struct {
	Client *kgo.Client
	Parked string // the topic of messages for a person
	Handle func(context.Context, []*kgo.Record) []error
	Batch  int           // how many records to take at a time; 0 means 100
	Grace  time.Duration // for what is being handled when ctx of Run ends; 0 means grace.Period
}

// Options are those that the consumer needs of its client, beside brokers, group and topics. Only what is marked is committed. The
// group rebalances between two polls, unless handling takes longer than kgo.RebalanceTimeout: then another member gets the partitions
// while records are still handled here, and the guard alone keeps the two apart.
func Options() []kgo.Opt {
	return []kgo.Opt{kgo.AutoCommitMarks(), kgo.BlockRebalanceOnPoll()}
}

// Limit returns a handler for the guard that gives a record up after so many failed attempts, because Kafka delivers it again for
// ever. A panic counts as a failure. It would otherwise end the process, and then each process that gets the record.
func Limit(attempts int, handle func(context.Context, *kgo.Record) error) func(context.Context, *kgo.Record) error {
	return func(ctx context.Context, r *kgo.Record) (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
			attempt, ok := core.AttemptFrom(ctx)
			if action, delay := msglock.Disposition(err); action == msglock.Nack && delay == 0 && ok && attempt.Number() >= attempts {
				err = &msglock.ParkedError{Err: err}
			}
		}()
		return handle(ctx, r)
	}
}

// Run handles messages until ctx ends. What is being handled then is finished and committed.
func (c *Consumer) Run(ctx context.Context) error {
	work, cancel := grace.Context(ctx, cmp.Or(c.Grace, grace.Period))
	defer cancel()
	defer c.Client.AllowRebalance()
	for ctx.Err() == nil {
		fetches := c.Client.PollRecords(ctx, cmp.Or(c.Batch, 100))
		if fetches.IsClientClosed() {
			return kgo.ErrClientClosed
		}
		var partitions sync.WaitGroup
		stops := make(chan stop, len(fetches.Records()))
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			if len(p.Records) > 0 {
				partitions.Go(func() { c.partition(work, p.Records, stops) })
			}
		})
		partitions.Wait()
		close(stops)
		for s := range stops {
			c.again(s)
		}
		// After an error the client commits what is marked a few seconds later, or another member gets the messages again: their guard
		// acknowledges them then.
		if err := c.Client.CommitMarkedOffsets(work); err != nil {
			slog.ErrorContext(ctx, "offsets not committed", "error", err)
		}
		c.Client.AllowRebalance()
	}
	return ctx.Err()
}

// stop is a record at which its partition stops for a while.
type stop struct {
	*kgo.Record
	delay time.Duration
}

// partition handles records of one partition in their order. It marks those before the first one that has to come again.
func (c *Consumer) partition(ctx context.Context, records []*kgo.Record, stops chan<- stop) {
	done := records
	for i, err := range c.Handle(ctx, records) {
		action, delay := msglock.Disposition(err)
		if action == msglock.Park {
			if failed := c.park(ctx, records[i], err); failed != nil {
				action, err = msglock.Nack, fmt.Errorf("not parked: %w", failed)
			}
		}
		if action == msglock.Nack {
			slog.WarnContext(ctx, "partition stops", "topic", records[i].Topic, "partition", records[i].Partition,
				"offset", records[i].Offset, "error", err)
			done = records[:i]
			stops <- stop{records[i], cmp.Or(delay, retryDelay)}
			break
		}
	}
	c.Client.MarkCommitRecords(done...)
}

// again has the partition of a record read again from there after the delay. Other partitions continue.
func (c *Consumer) again(s stop) {
	partition := map[string][]int32{s.Topic: {s.Partition}}
	c.Client.PauseFetchPartitions(partition)
	c.Client.SetOffsets(map[string]map[int32]kgo.EpochOffset{s.Topic: {s.Partition: {Epoch: -1, Offset: s.Offset}}})
	time.AfterFunc(s.delay, func() { c.Client.ResumeFetchPartitions(partition) })
}

// park copies a record to the topic of messages for a person, with the reason and where it was.
func (c *Consumer) park(ctx context.Context, r *kgo.Record, reason error) error {
	headers := append(r.Headers[:len(r.Headers):len(r.Headers)],
		kgo.RecordHeader{Key: "parked.reason", Value: []byte(reason.Error())},
		kgo.RecordHeader{Key: "parked.topic", Value: []byte(r.Topic)},
		kgo.RecordHeader{Key: "parked.partition", Value: []byte(strconv.Itoa(int(r.Partition)))},
		kgo.RecordHeader{Key: "parked.offset", Value: []byte(strconv.FormatInt(r.Offset, 10))})
	return c.Client.ProduceSync(ctx, &kgo.Record{Topic: c.Parked, Key: r.Key, Value: r.Value, Headers: headers}).FirstErr()
}
