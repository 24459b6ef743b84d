package msglock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/msglock"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

func batchOf(keys ...string) (batch []*message) {
	for _, key := range keys {
		batch = append(batch, &message{Key: key})
	}
	return batch
}

// TestBatch: each message has its own outcome, and handlers run in the order of the batch, one after the other.
func TestBatch(t *testing.T) {
	t.Parallel()
	locks, _ := newLocks(t)
	var handled []string
	var inside atomic.Int64
	handle := patientBatch(locks, "billing", byKey, func(ctx context.Context, m *message) error {
		if inside.Add(1) != 1 {
			t.Error("two handlers at a time")
		}
		defer inside.Add(-1)
		if token, ok := core.TokenFrom(ctx); !ok || token == 0 || core.KeyHash(ctx) == "" {
			t.Error("no attempt in the context")
		}
		handled = append(handled, m.Key)
		switch m.Key {
		case "fails":
			return errHandler
		case "unknown":
			return core.Hold(ctx, "ask")
		case "after":
			_ = core.Complete(ctx)
			return errHandler
		}
		return nil
	})
	batch := batchOf("a", "fails", "b", "", "unknown", "a", "after", "c", "fails")
	batch = append(batch, nil)
	for round, all := range [][]string{{"a", "fails", "b", "unknown", "after", "c", "fails"}, {"fails", "fails"}} {
		handled = nil
		errs := handle(t.Context(), batch)
		for i, action := range []msglock.Action{
			msglock.Ack, msglock.Nack, msglock.Ack, msglock.Park, msglock.Park, msglock.Ack, msglock.Ack, msglock.Ack, msglock.Nack, msglock.Park,
		} {
			if got, _ := msglock.Disposition(errs[i]); got != action {
				t.Errorf("round %d, %d: action %d after %v", round, i, got, errs[i])
			}
		}
		if !slices.Equal(handled, all) {
			t.Errorf("round %d: handled %q, want %q", round, handled, all)
		}
	}
	if errs := handle(t.Context(), nil); len(errs) > 0 {
		t.Error(errs)
	}
}

// TestBatchRoundTrips: a hundred messages are claimed in one round trip.
func TestBatchRoundTrips(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := coretest.NewClient(t, server.Client())
	handle := patientBatch(locks, "billing", byKey, first)
	handle(t.Context(), batchOf("warm", "warmer"))
	var keys []string
	for i := range 100 {
		keys = append(keys, fmt.Sprint(i))
	}
	before := coretest.ReadCounters(t, server)
	for _, err := range handle(t.Context(), batchOf(keys...)) {
		want(t, err, msglock.Ack)
	}
	after := coretest.ReadCounters(t, server)
	scripts, reads := after.Calls-before.Calls, after.Reads-before.Reads
	t.Logf("%d scripts in %d reads of the server", scripts, reads)
	if scripts != 200 || reads > 60 {
		t.Errorf("%d scripts in %d reads of the server", scripts, reads)
	}
}

// TestBatchPanic: the others are handled, and the panic continues. It names the message by its position, and the function in which
// it happened.
func TestBatchPanic(t *testing.T) {
	t.Parallel()
	locks, _ := newLocks(t)
	var ran atomic.Int64
	handler := func(_ context.Context, m *message) error {
		if ran.Add(1); m.Key == "order-7" && ran.Load() < 5 {
			panicking()
		}
		return nil
	}
	handle := patientBatch(locks, "billing", byKey, handler)
	func() {
		defer func() {
			err, _ := recover().(error)
			if !errors.Is(err, errHandler) {
				t.Fatalf("panic %v", err)
			}
			for _, part := range []string{errHandler.Error(), "at index 1 of 3", "msglock_test.panicking", "batch_test.go"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the panic does not have %q: %v", part, err)
				}
			}
			if strings.Contains(err.Error(), "order-7") {
				t.Errorf("the panic has the key: %v", err)
			}
		}()
		handle(t.Context(), batchOf("a", "order-7", "b"))
	}()
	if ran.Load() != 3 {
		t.Errorf("%d handled", ran.Load())
	}
	ran.Store(10)
	for _, err := range handle(t.Context(), batchOf("a", "order-7", "b")) {
		want(t, err, msglock.Ack)
	}
	if ran.Load() != 11 {
		t.Errorf("%d handled", ran.Load())
	}
}

func panicking() { panic(errHandler) }

// TestBatchGoexit: a handler that ends its goroutine has not succeeded.
func TestBatchGoexit(t *testing.T) {
	t.Parallel()
	locks, _ := newLocks(t)
	var exit atomic.Bool
	exit.Store(true)
	handle := patientBatch(locks, "billing", byKey, func(_ context.Context, m *message) error {
		if m.Key == "exits" && exit.Swap(false) {
			runtime.Goexit()
		}
		return nil
	})
	for _, action := range []msglock.Action{msglock.Nack, msglock.Ack} {
		errs := handle(t.Context(), batchOf("a", "exits", "b"))
		want(t, errs[0], msglock.Ack)
		want(t, errs[1], action)
		want(t, errs[2], msglock.Ack)
	}
}

// TestBatchEnds: after the end of the context no handler begins, and nothing stays claimed.
func TestBatchEnds(t *testing.T) {
	t.Parallel()
	locks, _ := newLocks(t)
	ctx, cancel := context.WithCancel(t.Context())
	var ran atomic.Int64
	handler := func(context.Context, *message) error {
		if ran.Add(1) == 2 {
			cancel()
		}
		return nil
	}
	errs := patientBatch(locks, "billing", byKey, handler)(ctx, batchOf("a", "b", "c", "d"))
	for i, action := range []msglock.Action{msglock.Ack, msglock.Ack, msglock.Nack, msglock.Nack} {
		want(t, errs[i], action)
	}
	if !errors.Is(errs[3], context.Canceled) || ran.Load() != 2 {
		t.Errorf("%v, %d handled", errs[3], ran.Load())
	}
	for _, err := range patientBatch(locks, "billing", byKey, handler)(t.Context(), batchOf("a", "b", "c", "d")) {
		want(t, err, msglock.Ack)
	}
	if ran.Load() != 4 {
		t.Errorf("%d handled", ran.Load())
	}
}

// TestBatchPasses: messages without a key that need none are handled in their turn.
func TestBatchPasses(t *testing.T) {
	t.Parallel()
	locks, _ := newLocks(t)
	var mu sync.Mutex
	var handled []string
	handle := patientBatch(locks, "billing", byKey, func(_ context.Context, m *message) error {
		mu.Lock()
		defer mu.Unlock()
		handled = append(handled, m.Key)
		return nil
	}, msglock.OptionalKey())
	for _, err := range handle(t.Context(), batchOf("a", "", "b", "", "", "c")) {
		want(t, err, msglock.Ack)
	}
	if !slices.Equal(handled, []string{"a", "", "b", "", "", "c"}) {
		t.Errorf("handled %q", handled)
	}
}

// TestBatchBeside: two consumers that take the same hundred messages at the same time handle each once.
func TestBatchBeside(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	var mu sync.Mutex
	handled := make(map[string]int)
	var keys []string
	for i := range 100 {
		keys = append(keys, fmt.Sprint(i))
	}
	var all sync.WaitGroup
	for range 3 {
		locks := coretest.NewClient(t, server.Client())
		handle := patientBatch(locks, "billing", byKey, func(_ context.Context, m *message) error {
			mu.Lock()
			defer mu.Unlock()
			handled[m.Key]++
			return nil
		}, core.WithWait(100*time.Millisecond))
		all.Go(func() {
			testkit.Eventually(t, coretest.Long, "the batch", func() bool {
				return !slices.ContainsFunc(handle(t.Context(), batchOf(keys...)), func(err error) bool { return err != nil })
			})
		})
	}
	all.Wait()
	for _, key := range keys {
		if handled[key] != 1 {
			t.Errorf("%s handled %d times", key, handled[key])
		}
	}
}

// TestBatchWithoutRedis: every message comes again, and none is handled.
func TestBatchWithoutRedis(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	relay := server.Relay()
	locks := coretest.NewClient(t, relay.Client())
	var ran atomic.Int64
	handle := patientBatch(locks, "billing", byKey, counting(&ran), msglock.WithAskTimeout(200*time.Millisecond))
	relay.Refuse(true)
	relay.Reset()
	for _, err := range handle(t.Context(), batchOf("a", "b", "c")) {
		if action, delay := msglock.Disposition(err); action != msglock.Nack || delay <= 0 || !errors.Is(err, core.ErrUnavailable) {
			t.Errorf("%v: %v", err, delay)
		}
	}
	relay.Heal()
	testkit.Eventually(t, coretest.Long, "Redis", func() bool {
		return !slices.ContainsFunc(handle(t.Context(), batchOf("a", "b", "c")), func(err error) bool { return err != nil })
	})
	if ran.Load() != 3 {
		t.Errorf("%d handled", ran.Load())
	}
}

// TestBatchMemberWaitsForRunWithoutRedis: a message that waits for a run of this process, which began in an outage, keeps the other
// messages of its batch from nothing. They run with Redis.
func TestBatchMemberWaitsForRunWithoutRedis(t *testing.T) {
	t.Parallel()
	relay := testkit.Start(t).Relay()
	rdb := relay.Client()
	coretest.WarmPool(t, rdb)
	locks := coretest.NewClient(t, rdb)
	release, entered, ran := make(chan struct{}), make(chan struct{}), make(chan string, 4)
	handle := msglock.OnceBatch(locks, "c", byKey, func(ctx context.Context, m *message) error {
		if m.Key != "a" {
			ran <- fmt.Sprint(m.Key, " without Redis: ", msglock.Degraded(ctx))
			return nil
		}
		close(entered)
		<-release
		return nil
	}, msglock.FailOpen(), core.WithWait(30*time.Second))
	relay.Refuse(true)
	relay.Reset()
	first, second := make(chan []error, 1), make(chan []error, 1)
	go func() { first <- handle(t.Context(), batchOf("a")) }()
	<-entered
	relay.Refuse(false)
	relay.Heal()
	testkit.Eventually(t, 20*time.Second, "Redis is back", func() bool { return rdb.Ping(t.Context()).Err() == nil })
	go func() { second <- handle(t.Context(), batchOf("b", "a", "c")) }()
	got := []string{<-ran}
	close(release)
	for _, errs := range [][]error{<-first, <-second} {
		for i, err := range errs {
			if action, _ := msglock.Disposition(err); action != msglock.Ack {
				t.Errorf("%d: %v", i, err)
			}
		}
	}
	if got = append(got, <-ran); !slices.Equal(got, []string{"b without Redis: false", "c without Redis: false"}) {
		t.Errorf("ran %q", got)
	}
}
