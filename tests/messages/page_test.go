package messages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/msglock"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// pageConsumer is the first program of docs/messages.md.
const pageConsumer = "func consume("

func consume(ctx context.Context, locks *core.Client, client *kgo.Client, charge func(_ context.Context, _ *kgo.Record, key string) error) {
	byOrder := func(_ context.Context, r *kgo.Record) (string, error) { return string(r.Key), nil }
	chargeOnce := func(ctx context.Context, r *kgo.Record) error {
		if err := charge(ctx, r, core.KeyHash(ctx)); err != nil { // the payment service's own key: the same for every attempt
			return err
		}
		_ = core.Complete(ctx) // charged: recorded now, not later with others of the batch
		return nil
	}
	handle := msglock.OnceBatch(locks, "billing", byOrder, chargeOnce, // "billing": the consumer group
		core.WithRetention(100*24*time.Hour)) // longer than the topic keeps messages, and than a parked one may wait

	defer client.AllowRebalance()
	client.PollRecords(ctx, 100).EachPartition(func(p kgo.FetchTopicPartition) {
		for i, err := range handle(ctx, p.Records) { // one error for each record
			r := p.Records[i]
			action, delay := msglock.Disposition(err)
			if action == msglock.Park { // for a person
				parked := &kgo.Record{Topic: "orders.parked", Key: r.Key, Value: r.Value}
				if client.ProduceSync(ctx, parked).FirstErr() != nil {
					action = msglock.Nack
				}
			}
			if action == msglock.Nack { // stop here, and read the partition again from r after the delay
				partition := map[string][]int32{r.Topic: {r.Partition}}
				client.PauseFetchPartitions(partition)
				client.SetOffsets(map[string]map[int32]kgo.EpochOffset{r.Topic: {r.Partition: {Epoch: -1, Offset: r.Offset}}})
				time.AfterFunc(cmp.Or(delay, time.Second), func() { client.ResumeFetchPartitions(partition) })
				return
			}
			client.MarkCommitRecords(r) // done, now or before
		}
	})
}

// TestPageConsumer: with the first program of the page, each message takes effect once although a handler fails once, also if the
// consumer is restarted before the message comes again. What cannot be read goes to the topic of parked messages.
func TestPageConsumer(t *testing.T) {
	t.Parallel()
	page, source := readText(t, "../../docs/messages.md"), readText(t, "page_test.go")
	_, program, _ := strings.Cut(source, "\n"+pageConsumer)
	if program, _, _ = strings.Cut(program, "\n}\n"); !strings.Contains(page, pageConsumer+program+"\n}\n") {
		t.Error("the program of the page is not the one of this test")
	}
	for name, restarted := range map[string]bool{"Goes on": false, "Restarted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := startGroup(t, func(context.Context, *kgo.Record) error { return nil })
			locks := coretest.NewClient(t, testkit.Start(t).Client())
			effects, failed := make(map[string]int), false
			charge := func(_ context.Context, r *kgo.Record, key string) error {
				if key == "" {
					return errors.New("no key for the payment service")
				}
				switch key := string(r.Key); {
				case key == "3" && !failed:
					failed = true
					return errors.New("fails once")
				case key == "7":
					return &msglock.ParkedError{Err: errors.New("cannot be read")}
				default:
					effects[key]++
					return nil
				}
			}
			run := func(until func() bool) {
				client := g.newClient(kgo.AutoCommitMarks(), kgo.BlockRebalanceOnPoll(), kgo.ConsumeTopics(topic), kgo.ConsumerGroup("tests"),
					kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(50*time.Millisecond))
				defer client.CloseAllowingRebalance()
				for deadline := time.Now().Add(within); !until() && time.Now().Before(deadline); {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					consume(ctx, locks, client, charge)
					cancel()
				}
				if err := client.CommitMarkedOffsets(t.Context()); err != nil {
					t.Error(err)
				}
			}
			for i := range 10 {
				g.send(0, fmt.Sprint(i))
			}
			if restarted {
				run(func() bool { return failed })
			}
			run(func() bool { return len(effects) == 9 })
			for i := range 10 {
				if n := effects[fmt.Sprint(i)]; i != 7 && n != 1 {
					t.Errorf("order %d has taken effect %d times", i, n)
				}
			}
			if r := g.parked(); string(r.Key) != "7" {
				t.Errorf("%s is parked", r.Key)
			}
		})
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
