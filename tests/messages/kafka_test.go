package messages

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/holdfast-go/holdfast/examples/messages/kafka"
	"github.com/holdfast-go/holdfast/msglock"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// group is a Kafka with a consumer of the recipe.
type group struct {
	t        *testing.T
	addr     string
	client   *kgo.Client // sends and looks
	consumer kafka.Consumer
	end      context.CancelFunc
	ended    chan error
}

// startGroup starts a broker and a consumer whose guarded handler is that.
func startGroup(t *testing.T, handle func(context.Context, *kgo.Record) error) *group {
	t.Helper()
	cluster := kfake.MustCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, topic), kfake.SeedTopics(1, dead))
	t.Cleanup(cluster.Close)
	g := &group{t: t, addr: cluster.ListenAddrs()[0]}
	g.client = g.newClient(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	byKey := func(_ context.Context, r *kgo.Record) (string, error) { return string(r.Key), nil }
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	g.consumer = kafka.Consumer{Parked: dead, Handle: msglock.OnceBatch(locks, "tests", byKey, handle)}
	return g
}

func (g *group) newClient(opts ...kgo.Opt) *kgo.Client {
	g.t.Helper()
	client, err := kgo.NewClient(append(opts, kgo.SeedBrokers(g.addr))...)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(client.Close)
	return client
}

// run runs the consumer until the test or stop ends it.
func (g *group) run() {
	g.consumer.Client = g.newClient(append(kafka.Options(), kgo.ConsumeTopics(topic), kgo.ConsumerGroup("tests"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(50*time.Millisecond))...)
	ctx, end := context.WithCancel(context.Background())
	g.end, g.ended = end, make(chan error, 1)
	go func() { g.ended <- g.consumer.Run(ctx) }()
	g.t.Cleanup(end)
}

func (g *group) send(partition int32, keys ...string) {
	g.t.Helper()
	for _, key := range keys {
		r := &kgo.Record{Topic: topic, Partition: partition, Key: []byte(key), Value: []byte("value of " + key)}
		if err := g.client.ProduceSync(g.t.Context(), r).FirstErr(); err != nil {
			g.t.Fatal(err)
		}
	}
}

// committed returns the offset of the group in a partition, 0 if there is none.
func (g *group) committed(partition int32) int64 {
	offsets, _ := kadm.NewClient(g.client).FetchOffsets(context.Background(), "tests") // an error before the group has a member
	at, _ := offsets.Lookup(topic, partition)
	return max(at.At, 0)
}

// parked returns the first record of the topic of parked ones.
func (g *group) parked() *kgo.Record {
	g.t.Helper()
	client := g.newClient(kgo.ConsumeTopics(dead), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ctx, cancel := context.WithTimeout(g.t.Context(), within)
	defer cancel()
	records := client.PollFetches(ctx).Records()
	if len(records) == 0 {
		g.t.Fatal("nothing is parked")
	}
	return records[0]
}

func headersOf(r *kgo.Record) map[string]string {
	headers := make(map[string]string)
	for _, h := range r.Headers {
		headers[h.Key] = string(h.Value)
	}
	return headers
}

// TestKafkaDeferred: while one partition waits for a message that has to come again, the other one continues.
func TestKafkaDeferred(t *testing.T) {
	t.Parallel()
	const others = 20
	var busy, handled atomic.Int64
	again := make(chan int64, 1)
	first, one := make(chan struct{}), make(chan struct{}, others)
	g := startGroup(t, func(_ context.Context, r *kgo.Record) error {
		switch {
		case r.Partition == 1:
			handled.Add(1)
			one <- struct{}{}
		case busy.Add(1) == 1:
			close(first)
			return &msglock.DeferredError{RetryAfter: 5 * time.Second, Err: errors.New("busy")}
		default:
			again <- handled.Load()
		}
		return nil
	})
	g.send(0, "busy")
	g.run()
	coretest.WaitFor(t, first, "the first delivery")
	for i := range others {
		g.send(1, fmt.Sprint("other", i))
		select {
		case <-one:
		case <-time.After(within):
			t.Fatalf("record %d of the other partition is not handled", i)
		}
	}
	if n := <-again; n != others {
		t.Errorf("%d of %d records of the other partition were handled while one waited", n, others)
	}
	testkit.Eventually(t, within, "the offset", func() bool { return g.committed(0) == 1 && g.committed(1) == others })
}

// TestKafkaGivesUp: a record whose handler panics or fails each time is parked after some attempts, with the reason and where it was.
// Records behind it are handled, and the process lives.
func TestKafkaGivesUp(t *testing.T) {
	t.Parallel()
	var panics, fails, handled atomic.Int64
	g := startGroup(t, kafka.Limit(2, func(_ context.Context, r *kgo.Record) error {
		switch string(r.Key) {
		case "panics":
			panics.Add(1)
			panickingHandler()
		case "fails":
			fails.Add(1)
			return errors.New("the bank says no")
		}
		handled.Add(1)
		return nil
	}))
	g.send(0, "panics", "fails", "ok", "")
	g.run()
	testkit.Eventually(t, within, "the records", func() bool { return g.committed(0) == 4 })
	if panics.Load() != 2 || fails.Load() != 2 || handled.Load() != 1 {
		t.Errorf("panics %d, fails %d, handled %d", panics.Load(), fails.Load(), handled.Load())
	}
	ends, err := kadm.NewClient(g.client).ListEndOffsets(t.Context(), dead)
	if end, _ := ends.Lookup(dead, 0); err != nil || end.Offset != 3 {
		t.Errorf("%d parked, %v", end.Offset, err)
	}
	r := g.parked()
	headers := headersOf(r)
	if string(r.Key) != "panics" || string(r.Value) != "value of panics" || headers["parked.topic"] != topic ||
		headers["parked.partition"] != "0" || headers["parked.offset"] != "0" || !strings.Contains(headers["parked.reason"], "panickingHandler") {
		t.Errorf("parked %s %s, %v", r.Key, r.Value, headers)
	}
}

func panickingHandler() { panic("the handler panics") }

// TestKafkaStops: what is handled when the consumer stops is finished and committed, unless that takes longer than the grace.
func TestKafkaStops(t *testing.T) {
	t.Parallel()
	for name, finishes := range map[string]bool{"Finishes": true, "Hangs": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began, finish := make(chan struct{}), make(chan struct{})
			var once sync.Once
			var cause error
			g := startGroup(t, func(ctx context.Context, _ *kgo.Record) error {
				once.Do(func() { close(began) })
				select {
				case <-finish:
				case <-ctx.Done():
					cause = ctx.Err()
				}
				return cause
			})
			want := int64(1)
			if !finishes {
				g.consumer.Grace, want = 100*time.Millisecond, 0
			}
			g.send(0, "slow")
			g.run()
			coretest.WaitFor(t, began, "the handler")
			g.end()
			if finishes {
				time.AfterFunc(200*time.Millisecond, func() { close(finish) }) // a context that ends has done so by then
			}
			if err := coretest.Receive(t, g.ended); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			if (cause == nil) != finishes {
				t.Errorf("the context of the handler: %v", cause)
			}
			if got := g.committed(0); got != want {
				t.Errorf("committed %d, want %d", got, want)
			}
		})
	}
}
