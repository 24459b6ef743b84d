package messages

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	amqp "github.com/rabbitmq/amqp091-go"

	recipejetstream "github.com/holdfast-go/holdfast/examples/messages/jetstream"
	"github.com/holdfast-go/holdfast/examples/messages/rabbitmq"
	"github.com/holdfast-go/holdfast/msglock"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// errUnreadable is why the handlers of these tests park a message. A header has one line.
var errUnreadable = errors.New("the order cannot\nbe read")

// runConsumer runs a consumer until the returned function is called, or the test ends.
func runConsumer(t *testing.T, run func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = run(ctx)
	}()
	stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	return stop
}

// TestJetStreamParks: a parked message is in the stream of parked ones, with the reason, and does not come again.
func TestJetStreamParks(t *testing.T) {
	t.Parallel()
	n := startJetStream(t).(*natsBroker)
	ctx := t.Context()
	consumer, err := n.js.Consumer(ctx, "orders", "tests")
	if err != nil {
		t.Fatal(err)
	}
	c := &recipejetstream.Consumer{JetStream: n.js, Consumer: consumer, Parked: dead}
	byText := func(_ context.Context, m jetstream.Msg) (string, error) { return string(m.Data()), nil }
	c.Handle = msglock.Once(coretest.NewClient(t, testkit.Start(t).Client()), "tests", byText, func(context.Context, jetstream.Msg) error {
		return &msglock.ParkedError{Err: errUnreadable}
	})
	for _, text := range []string{"", "unreadable"} {
		if err := n.publish(ctx, text); err != nil {
			t.Fatal(err)
		}
	}
	stop := runConsumer(t, c.Run)
	testkit.Eventually(t, within, "the messages to be parked", func() bool {
		pending, parked, err := n.left(ctx)
		return err == nil && pending == 0 && parked == 2
	})
	stop()
	stream, err := n.js.Stream(ctx, "parked")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"no key", "the order cannot be read"} {
		m, err := stream.GetMsg(ctx, uint64(i+1))
		if err != nil || !strings.Contains(m.Header.Get("Parked-Reason"), want) || string(m.Data) != []string{"", "unreadable"}[i] {
			t.Errorf("parked %+v, %v, want %q", m, err, want)
		}
	}
}

// lines is a log.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// TestRabbitMQParks: a parked message is in the queue of dead letters, and does not come again. RabbitMQ cannot say there why, so the log
// of the consumer does. The test is not parallel, because that is the log of the process.
func TestRabbitMQParks(t *testing.T) { //nolint:paralleltest
	r := startRabbitMQ(t).(*rabbit)
	log, before := new(lines), slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(log, nil)))
	defer slog.SetDefault(before)
	byText := func(_ context.Context, d amqp.Delivery) (string, error) { return string(d.Body), nil }
	c := &rabbitmq.Consumer{Dial: r.dial, Queue: topic}
	c.Handle = msglock.Once(coretest.NewClient(t, testkit.Start(t).Client()), "tests", byText, func(context.Context, amqp.Delivery) error {
		return &msglock.ParkedError{Err: errUnreadable}
	})
	for _, text := range []string{"", "unreadable"} {
		if err := r.publish(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	stop := runConsumer(t, c.Run)
	testkit.Eventually(t, within, "the messages to be parked", func() bool {
		pending, parked, err := r.left(t.Context())
		return err == nil && pending == 0 && parked == 2
	})
	stop()
	for _, want := range []string{"no key", `the order cannot\nbe read`, "queue=" + topic} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not have %q:\n%s", want, log)
		}
	}
	channel, err := r.conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	defer channel.Close()
	for range 2 {
		d, ok, err := channel.Get(topic+".parked", true)
		if err != nil || !ok || d.Headers["x-first-death-reason"] != "rejected" {
			t.Errorf("dead letter %+v, %v, %v", d.Headers, ok, err)
		}
	}
}
