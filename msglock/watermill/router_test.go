package watermilllock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/holdfast-go/holdfast/core"
	watermilllock "github.com/holdfast-go/holdfast/msglock/watermill"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

const within = 20 * time.Second

// station is a router on channels in memory.
type station struct {
	t       *testing.T
	router  *message.Router
	channel *gochannel.GoChannel
	locks   *core.Client
}

func newStation(t *testing.T) *station {
	t.Helper()
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: within}, watermill.NopLogger{})
	if err != nil {
		t.Fatal(err)
	}
	channel := gochannel.NewGoChannel(gochannel.Config{OutputChannelBuffer: 100, Persistent: true}, watermill.NopLogger{})
	return &station{t, router, channel, coretest.NewClient(t, testkit.Start(t).Client())}
}

func (s *station) run() {
	s.t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- s.router.Run(context.Background()) }()
	<-s.router.Running()
	s.t.Cleanup(func() {
		if err := errors.Join(s.router.Close(), <-ended, s.channel.Close()); err != nil {
			s.t.Error(err)
		}
	})
}

func (s *station) send(topic, order string) {
	s.t.Helper()
	m := message.NewMessage(watermill.NewUUID(), message.Payload(order))
	m.Metadata.Set("order", order)
	if err := s.channel.Publish(topic, m); err != nil {
		s.t.Fatal(err)
	}
}

// flaky is a publisher that fails for the first time of each message.
type flaky struct {
	message.Publisher
	mu     sync.Mutex
	failed map[string]bool
}

func (f *flaky) Publish(topic string, messages ...*message.Message) error {
	f.mu.Lock()
	first := !f.failed[string(messages[0].Payload)]
	f.failed[string(messages[0].Payload)] = true
	f.mu.Unlock()
	if first {
		return errors.New("the broker is away")
	}
	return f.Publisher.Publish(topic, messages...)
}

// TestRepublishedAfterAFailure: after a failure between handling and publishing, the messages are published again, as they were, and the
// handler does not run again. Duplicates publish them too: they have the same UUIDs.
func TestRepublishedAfterAFailure(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.router.AddMiddleware(watermilllock.Once(s.locks, "billing", watermilllock.ByMetadata("order"), patient))
	var ran atomic.Int64
	s.router.AddHandler("charge", "orders", s.channel, "receipts", &flaky{s.channel, sync.Mutex{}, map[string]bool{}},
		func(m *message.Message) ([]*message.Message, error) {
			ran.Add(1)
			if token, ok := core.TokenFrom(m.Context()); !ok || token == 0 {
				t.Error("the context of the message has no attempt")
			}
			receipt := message.NewMessage(watermill.NewUUID(), m.Payload)
			receipt.Metadata.Set("of", m.Metadata.Get("order"))
			return message.Messages{receipt}, nil
		})
	receipts, err := s.channel.Subscribe(context.Background(), "receipts")
	if err != nil {
		t.Fatal(err)
	}
	s.run()
	const orders = 20
	for range 2 {
		for i := range orders {
			s.send("orders", fmt.Sprint(i))
		}
	}
	uuids, n := make(map[string]string), 0
	for n < 2*orders {
		select {
		case m := <-receipts:
			m.Ack()
			n++
			order := m.Metadata.Get("of")
			if order == "" || string(m.Payload) != order || uuids[order] != "" && uuids[order] != m.UUID {
				t.Errorf("receipt %s of %q for %q", m.UUID, order, m.Payload)
			}
			uuids[order] = m.UUID
		case <-time.After(within):
			t.Fatalf("%d receipts", n)
		}
	}
	if ran.Load() != orders || len(uuids) != orders {
		t.Errorf("%d handled, receipts of %d", ran.Load(), len(uuids))
	}
}

// TestDeduplicatorLoses is the baseline: the message of a handler that fails once is lost behind Watermill's own middleware.
func TestDeduplicatorLoses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		guard func(*station) message.HandlerMiddleware
		paid  int64
	}{
		"Deduplicator": {func(*station) message.HandlerMiddleware { return (&middleware.Deduplicator{}).Middleware }, 0},
		"Once": {func(s *station) message.HandlerMiddleware {
			return watermilllock.Once(s.locks, "billing", watermilllock.ByMetadata("order"), patient)
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStation(t)
			var calls, paid atomic.Int64
			done := make(chan struct{})
			s.router.AddNoPublisherHandler("charge", "orders", s.channel, func(*message.Message) error {
				if calls.Add(1) == 1 {
					return errors.New("the bank is away")
				}
				paid.Add(1)
				return nil
			}).AddMiddleware(test.guard(s)) // the Deduplicator has a data race if several handlers share it
			s.router.AddNoPublisherHandler("end", "ends", s.channel, func(*message.Message) error {
				close(done)
				return nil
			})
			s.run()
			s.send("orders", "1")
			testkit.Eventually(t, within, "the order", func() bool { return calls.Load() == test.paid+1 })
			s.send("ends", "end")
			coretest.WaitFor(t, done, "the end")
			if paid.Load() != test.paid {
				t.Errorf("%d calls, %d paid", calls.Load(), paid.Load())
			}
		})
	}
}

// TestHandlersAreApart: one middleware guards two handlers of a router that get messages with one key.
func TestHandlersAreApart(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.router.AddMiddleware(watermilllock.Once(s.locks, "billing", watermilllock.ByMetadata("order"), patient))
	var mu sync.Mutex
	var handled []string
	for _, name := range []string{"charge", "mail"} {
		s.router.AddNoPublisherHandler(name, "orders", s.channel, func(*message.Message) error {
			mu.Lock()
			defer mu.Unlock()
			handled = append(handled, name)
			return nil
		})
	}
	s.run()
	s.send("orders", "1")
	testkit.Eventually(t, within, "both handlers", func() bool {
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(handled)
		return slices.Equal(handled, []string{"charge", "mail"})
	})
}

// TestNackedByTheHandler: the message comes again, and its handler runs again.
func TestNackedByTheHandler(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.router.AddMiddleware(watermilllock.Once(s.locks, "billing", watermilllock.ByMetadata("order"), patient))
	var ran atomic.Int64
	s.router.AddNoPublisherHandler("charge", "orders", s.channel, func(m *message.Message) error {
		if ran.Add(1) == 1 {
			m.Nack()
		}
		return nil
	})
	s.run()
	s.send("orders", "1")
	testkit.Eventually(t, within, "the second run", func() bool { return ran.Load() == 2 })
}

// TestParked: what delivering again does not help goes to the poison queue, where an operator decides.
func TestParked(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	poison, err := middleware.PoisonQueueWithFilter(s.channel, "poison", watermilllock.Parked)
	if err != nil {
		t.Fatal(err)
	}
	guard, err := watermilllock.NewOnce(s.locks, "billing", watermilllock.ByMetadata("order"), patient, core.WithFailurePolicy(core.HoldFailures))
	if err != nil {
		t.Fatal(err)
	}
	s.router.AddMiddleware(poison, guard.Wrap)
	var ran atomic.Int64
	s.router.AddHandler("charge", "orders", s.channel, "receipts", s.channel, func(*message.Message) ([]*message.Message, error) {
		ran.Add(1)
		return nil, errors.New("no answer from the bank")
	})
	parked, err := s.channel.Subscribe(context.Background(), "poison")
	if err != nil {
		t.Fatal(err)
	}
	receipts, err := s.channel.Subscribe(context.Background(), "receipts")
	if err != nil {
		t.Fatal(err)
	}
	s.run()
	next := func(from <-chan *message.Message) *message.Message {
		t.Helper()
		select {
		case m := <-from:
			m.Ack()
			return m
		case <-time.After(within):
			t.Fatal("no message")
			return nil
		}
	}
	for _, order := range []string{"1", "", "1"} {
		s.send("orders", order)
		if m := next(parked); string(m.Payload) != order {
			t.Errorf("parked %q", m.Payload)
		}
	}
	ctx := context.Background()
	seen, err := guard.Peek(ctx, "charge", "1")
	if err != nil || seen.State != core.StateUnknown {
		t.Fatalf("%+v, %v", seen, err)
	}
	if err := guard.Resolve(ctx, seen, message.NewMessage("r", message.Payload("by hand"))); err != nil {
		t.Fatal(err)
	}
	s.send("orders", "1")
	if m := next(receipts); m.UUID != "r" || string(m.Payload) != "by hand" {
		t.Errorf("%s %q", m.UUID, m.Payload)
	}
	if seen, err = guard.Peek(ctx, "charge", "1"); err != nil {
		t.Fatal(err)
	}
	if err := guard.Forget(ctx, seen); err != nil {
		t.Fatal(err)
	}
	s.send("orders", "1")
	next(parked)
	if ran.Load() != 2 {
		t.Errorf("%d handled", ran.Load())
	}
}

// TestArguments: what is wrong is said when the guard is made.
func TestArguments(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	for _, err := range []error{
		func() error { _, err := watermilllock.NewOnce(locks, "billing", nil); return err }(),
		func() error { _, err := watermilllock.NewOnce(locks, "", watermilllock.ByMetadata("x")); return err }(),
		func() error {
			_, err := watermilllock.NewOnce(nil, "billing", watermilllock.ByMetadata("x"))
			return err
		}(),
	} {
		if !errors.Is(err, core.ErrInvalidOption) {
			t.Error(err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("the short form does not panic")
		}
	}()
	watermilllock.Once(nil, "billing", watermilllock.ByMetadata("x"))
}

// TestNilMessages: a handler that is called without a message has none to run for, so it is parked. A nil among the messages that a
// handler returns is dropped, at the first delivery as at the next.
func TestNilMessages(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	handle := watermilllock.Once(locks, "billing", watermilllock.ByMetadata("order"), patient)(func(*message.Message) ([]*message.Message, error) {
		return message.Messages{nil, message.NewMessage("1", nil), nil}, nil
	})
	if _, err := handle(nil); !watermilllock.Parked(err) {
		t.Errorf("a nil message: %v", err)
	}
	for range 2 {
		m := message.NewMessage("", nil)
		m.Metadata.Set("order", "1")
		if produced, err := handle(m); err != nil || len(produced) != 1 || produced[0].UUID != "1" {
			t.Errorf("%v, %v", produced, err)
		}
	}
}
