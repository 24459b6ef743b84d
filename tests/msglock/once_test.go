package msglock_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
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

// message is what a broker delivers.
type message struct {
	Key  string
	Sent time.Time
}

func byKey(_ context.Context, m *message) (string, error) { return m.Key, nil }

var errHandler = errors.New("the handler failed")

// newLocks returns a client on a Redis of its own, and its log.
func newLocks(t *testing.T, opts ...core.Option) (*core.Client, *testkit.Log) {
	t.Helper()
	log := new(testkit.Log)
	opts = append(opts, core.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
	return coretest.NewClient(t, testkit.Start(t).Client(), opts...), log
}

func want(t *testing.T, err error, action msglock.Action) {
	t.Helper()
	if got, _ := msglock.Disposition(err); got != action {
		t.Errorf("action %d after %v, want %d", got, err, action)
	}
}

func counting(n *atomic.Int64) func(context.Context, *message) error {
	return func(context.Context, *message) error {
		n.Add(1)
		return nil
	}
}

// TestConsumersAreApart: two consumers of one topic handle the same message once each.
func TestConsumersAreApart(t *testing.T) {
	t.Parallel()
	locks, _ := newLocks(t)
	var ran atomic.Int64
	for _, consumer := range []string{"billing", "mail", "bill", "billing"} {
		want(t, patientOnce(locks, consumer, byKey, counting(&ran))(t.Context(), &message{Key: "ing"}), msglock.Ack)
	}
	if ran.Load() != 3 {
		t.Errorf("handled %d times", ran.Load())
	}
}

// TestBadMessages: none of them is dropped in silence.
func TestBadMessages(t *testing.T) {
	t.Parallel()
	locks, log := newLocks(t)
	var ran atomic.Int64
	broken := func(_ context.Context, m *message) (string, error) {
		switch m.Key {
		case "panics":
			panic("the key function panics")
		case "fails":
			return "x", errHandler
		}
		return m.Key, nil
	}
	once, err := newPatientOnce(locks, "billing", broken, counting(&ran))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []*message{{}, {Key: "panics"}, {Key: "fails"}, {Key: fmt.Sprint(nil)}, nil} {
		err := once.Handle(t.Context(), m)
		want(t, err, msglock.Park)
		if !errors.Is(err, msglock.ErrNoKey) {
			t.Error(err)
		}
		want(t, once.HandleBatch(t.Context(), []*message{m})[0], msglock.Park)
	}
	if ran.Load() != 0 || !strings.Contains(log.String(), "no key") {
		t.Errorf("handled %d times:\n%s", ran.Load(), log)
	}
	for range 2 {
		want(t, once.Handle(t.Context(), &message{Key: strings.Repeat("x", 1<<20)}), msglock.Ack)
	}
	if ran.Load() != 1 {
		t.Errorf("with a long key handled %d times", ran.Load())
	}
	var nothing any
	want(t, patientOnce(locks, "any", func(context.Context, any) (string, error) { return "x", nil },
		func(context.Context, any) error { return nil })(t.Context(), nothing), msglock.Park)
}

// TestParkedIsLogged: whatever the reason, the log has it, without keys and without what a handler said.
func TestParkedIsLogged(t *testing.T) {
	t.Parallel()
	key := func(_ context.Context, m *message) (string, error) {
		if m.Key == "fails" {
			return "", errors.New("no such header")
		}
		return m.Key, nil
	}
	parks := func(_ context.Context, m *message) (string, error) {
		if m.Key == "secret-1" {
			return "", &msglock.ParkedError{Err: errors.New("cannot read secret-1")}
		}
		return strings.Repeat("x", 100), nil
	}
	for name, test := range map[string]struct {
		m      *message
		times  int // until it is parked
		reason string
		text   string
	}{
		"Empty":   {&message{}, 1, "reason=no-key", "the message has no key"},
		"Fails":   {&message{Key: "fails"}, 1, "reason=no-key", "no such header"},
		"Nil":     {nil, 1, "reason=no-key", "the message is nil"},
		"Handler": {&message{Key: "secret-1"}, 1, "reason=handler", "key_hash="},
		"Result":  {&message{Key: "secret-2"}, 2, "reason=no-result", "key_hash="},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, log := newLocks(t)
			handle := patientValue(locks, "billing", key, parks, core.WithMaxValue(10))
			var err error
			for range test.times {
				_, err = handle(t.Context(), test.m)
			}
			want(t, err, msglock.Park)
			for _, part := range []string{"message parked", test.reason, test.text, "label=billing"} {
				if !strings.Contains(log.String(), part) {
					t.Errorf("the log does not have %q: %s", part, log)
				}
			}
			if strings.Contains(log.String(), "secret") {
				t.Errorf("the log has a key: %s", log)
			}
			before := log.String()
			if _, err = handle(t.Context(), test.m); log.String() != before {
				t.Errorf("logged again at once: %s", log)
			}
			want(t, err, msglock.Park)
		})
	}
}

// TestLogOfParked: each kind of error for which handlers park messages has a line, also an unknown outcome that the handler reports. The
// line has the type of the error, or what that says of itself for the log. A message that is acknowledged has none.
func TestLogOfParked(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err    error
		before func(context.Context) error
		action msglock.Action
		log    string
	}{
		"Type":     {&msglock.ParkedError{Err: fmt.Errorf("reading %q: %w", "secret", new(json.SyntaxError))}, nil, msglock.Park, "of type *json.SyntaxError"},
		"Value":    {&msglock.ParkedError{Err: loggedError{}}, nil, msglock.Park, "too old"},
		"Unknown":  {fmt.Errorf("secret: %w", core.ErrOutcomeUnknown), nil, msglock.Park, "reason=handler"},
		"Complete": {&msglock.ParkedError{Err: errHandler}, core.Complete, msglock.Ack, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, log := newLocks(t)
			parked := func(key string, err error) string {
				t.Helper()
				before := log.String()
				want(t, patientOnce(locks, "billing", byKey, func(ctx context.Context, _ *message) error {
					if test.before != nil {
						_ = test.before(ctx)
					}
					return err
				})(t.Context(), &message{Key: key}), test.action)
				return strings.TrimPrefix(log.String(), before)
			}
			parked("0", &msglock.ParkedError{Err: errHandler}) // of another type: it does not hide the next one
			line := parked("1", test.err)
			if strings.Contains(line, "secret") || !strings.Contains(line, test.log) || (line != "") != (test.log != "") {
				t.Errorf("the log has %q, want %q", line, test.log)
			}
		})
	}
}

type loggedError struct{}

func (loggedError) Error() string        { return "order-1 is too old" }
func (loggedError) LogValue() slog.Value { return slog.StringValue("too old") }

// TestStoppedKeyFunction: a key function that fails because the consumer stops says nothing about the message.
func TestStoppedKeyFunction(t *testing.T) {
	t.Parallel()
	locks, log := newLocks(t)
	ctx, stop := context.WithCancel(t.Context())
	handle := patientOnce(locks, "billing", func(ctx context.Context, _ *message) (string, error) {
		stop()
		return "", ctx.Err()
	}, first)
	err := handle(ctx, &message{Key: "1"})
	want(t, err, msglock.Nack)
	if !errors.Is(err, context.Canceled) || log.String() != "" {
		t.Errorf("%v\n%s", err, log)
	}
}

// TestActions: actions have names.
func TestActions(t *testing.T) {
	t.Parallel()
	if got := fmt.Sprint(msglock.Ack, msglock.Nack, msglock.Park, msglock.Action(9)); got != "Ack Nack Park Action(9)" {
		t.Error(got)
	}
}

// TestOptionalKey: a message with an empty key may be handled unguarded. One whose key is not known, because the key function has
// failed or the message is nil, may well have been handled before.
func TestOptionalKey(t *testing.T) {
	t.Parallel()
	locks, _ := newLocks(t)
	var handled atomic.Int64
	key := func(_ context.Context, m *message) (string, error) {
		switch m.Key {
		case "fails":
			return "", errors.New("no such header")
		case "panics":
			panic("no such header")
		}
		return m.Key, nil
	}
	count := func(context.Context, *message) error {
		handled.Add(1)
		return nil
	}
	batch := patientBatch(locks, "batch", key, count, msglock.OptionalKey())
	for name, handle := range map[string]func(context.Context, *message) error{
		"once":      patientOnce(locks, "once", key, count, msglock.OptionalKey()),
		"exclusive": patientExclusive(locks.Mutex, key, count, msglock.OptionalKey()),
		"batch":     func(ctx context.Context, m *message) error { return batch(ctx, []*message{m})[0] },
	} {
		handled.Store(0)
		want(t, handle(t.Context(), &message{}), msglock.Ack)
		for _, m := range []*message{{Key: "fails"}, {Key: "panics"}, {Key: fmt.Sprint(nil)}, nil} {
			err := handle(t.Context(), m)
			want(t, err, msglock.Park)
			if !errors.Is(err, msglock.ErrNoKey) {
				t.Errorf("%s, %v: %v", name, m, err)
			}
		}
		if handled.Load() != 1 {
			t.Errorf("%s: handled %d", name, handled.Load())
		}
	}
}

// TestArguments: what is wrong is said when the guard is made.
func TestArguments(t *testing.T) {
	t.Parallel()
	locks, _ := newLocks(t)
	handler := counting(new(atomic.Int64))
	beat := msglock.WithHeartbeat(time.Second, func(context.Context, *message) error { return nil })
	for name, test := range map[string]struct {
		make func() error
		says string
	}{
		"Client":       {func() error { _, err := msglock.NewOnce(nil, "c", byKey, handler); return err }, "client"},
		"Consumer":     {func() error { _, err := msglock.NewOnce(locks, "", byKey, handler); return err }, "consumer"},
		"LongConsumer": {func() error { _, err := msglock.NewOnce(locks, strings.Repeat("x", 300), byKey, handler); return err }, "WithLabel"},
		"Key":          {func() error { _, err := msglock.NewOnce(locks, "c", nil, handler); return err }, "key"},
		"Handler":      {func() error { _, err := msglock.NewOnce(locks, "c", byKey, nil); return err }, "handler"},
		"Strategy":     {func() error { _, err := msglock.NewExclusive(nil, byKey, handler); return err }, "strategy"},
		"ExclusiveKey": {func() error { _, err := msglock.NewExclusive(locks.Mutex, nil, handler); return err }, "key"},
		"Heartbeat": {func() error {
			_, err := msglock.NewOnce(locks, "c", byKey, handler, msglock.WithHeartbeat[*message](time.Second, nil))
			return err
		}, "WithHeartbeat"},
		"HeartbeatTime": {func() error {
			_, err := msglock.NewOnce(locks, "c", byKey, handler, msglock.WithHeartbeat(0, beatNothing))
			return err
		}, "WithHeartbeat(0s)"},
		"HeartbeatOfOther": {func() error {
			_, err := msglock.NewOnce(locks, "c", func(context.Context, message) (string, error) { return "", nil }, func(context.Context, message) error { return nil }, beat)
			return err
		}, "msglock.WithHeartbeat is for work of another type"},
		"Payload": {func() error {
			_, err := msglock.NewOnce(locks, "c", byKey, handler, msglock.ComparePayload[*message](nil))
			return err
		}, "ComparePayload"},
		"ExclusivePayload": {func() error {
			_, err := msglock.NewExclusive(locks.Mutex, byKey, handler, msglock.ComparePayload(func(*message) []byte { return nil }))
			return err
		}, "ComparePayload"},
		"Sent": {func() error {
			_, err := msglock.NewOnce(locks, "c", byKey, handler, msglock.WithSentTime[*message](nil))
			return err
		}, "WithSentTime"},
		"Hold": {func() error {
			_, err := msglock.NewOnce(locks, "c", byKey, handler, msglock.FailOpen(), core.WithFailurePolicy(core.HoldFailures))
			return err
		}, "FailOpen"},
		"Retention": {func() error {
			_, err := msglock.NewExclusive(locks.Mutex, byKey, handler, core.WithRetention(time.Hour))
			return err
		}, "keeps no records"},
		"Owner": {func() error {
			_, err := msglock.NewExclusive(locks.Mutex, byKey, handler, core.WithOwner("x"))
			return err
		}, "owner"},
		"Value": {func() error {
			_, err := msglock.NewOnceValue(locks, "c", byKey, func(context.Context, *message) (int, error) { return 0, nil }, msglock.FailOpen())
			return err
		}, "replayed"},
		"ValueHandler": {func() error {
			_, err := msglock.NewOnceValue[*message, int](locks, "c", byKey, nil)
			return err
		}, "handler"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := test.make(); err == nil || !errors.Is(err, core.ErrInvalidOption) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want one about %q", err, test.says)
			}
		})
	}
	defer func() {
		if recover() == nil {
			t.Error("the short form does not panic")
		}
	}()
	msglock.Once(locks, "", byKey, handler)
}

func beatNothing(context.Context, *message) error { return nil }

// TestDispositions: what handlers return decides, and a handler may say more.
func TestDispositions(t *testing.T) {
	t.Parallel()
	locks, _ := newLocks(t)
	returns := func(err error) func(context.Context, *message) error {
		return func(context.Context, *message) error { return err }
	}
	for i, test := range []struct {
		err    error
		action msglock.Action
		delay  time.Duration
	}{
		{nil, msglock.Ack, 0},
		{errHandler, msglock.Nack, 0},
		{fmt.Errorf("later: %w", &msglock.DeferredError{RetryAfter: time.Minute, Err: errHandler}), msglock.Nack, time.Minute},
		{fmt.Errorf("never: %w", &msglock.ParkedError{Err: errHandler}), msglock.Park, 0},
		{core.ErrOutcomeUnknown, msglock.Park, 0},
		{&msglock.DeferredError{RetryAfter: -time.Second, Err: errHandler}, msglock.Nack, 0},
	} {
		err := patientOnce(locks, "billing", byKey, returns(test.err))(t.Context(), &message{Key: fmt.Sprint(i)})
		if action, delay := msglock.Disposition(err); action != test.action || delay != test.delay || !errors.Is(err, test.err) {
			t.Errorf("%v: %d after %v", err, action, delay)
		}
	}
	for _, err := range []error{(*msglock.ParkedError)(nil), (*msglock.DeferredError)(nil)} {
		err := patientOnce(locks, "billing", byKey, returns(err))(t.Context(), &message{Key: fmt.Sprintf("%T", err)})
		want(t, err, msglock.Nack)
		if !strings.Contains(err.Error(), "nil *msglock.") {
			t.Errorf("after an error that is a nil pointer: %v", err)
		}
	}
	// What a guard inside has refused has done nothing, whatever the policy.
	holding := core.WithFailurePolicy(core.HoldFailures)
	var ran atomic.Int64
	inner := patientExclusive(locks.Mutex, byKey, counting(&ran))
	outer := patientOnce(locks, "outer", byKey, inner, holding)
	lease, err := locks.Mutex("x").Lock(t.Context()) // not the name of the guard
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Unlock(t.Context())
	began, end := make(chan struct{}), make(chan struct{})
	go func() {
		_ = patientExclusive(locks.Mutex, byKey, func(context.Context, *message) error {
			close(began)
			<-end
			return nil
		})(context.Background(), &message{Key: "busy"})
	}()
	<-began
	want(t, outer(t.Context(), &message{Key: "busy"}), msglock.Nack)
	close(end)
	testkit.Eventually(t, coretest.Long, "the turn of the message", func() bool {
		action, _ := msglock.Disposition(outer(t.Context(), &message{Key: "busy"}))
		return action == msglock.Ack
	})
	if ran.Load() != 1 {
		t.Errorf("handled %d times", ran.Load())
	}
}

// TestNested: a guard of the same consumer and key inside a handler lets all messages pass, because they are part of the run. Outside of
// the handler's context it defers them.
func TestNested(t *testing.T) {
	t.Parallel()
	locks, _ := newLocks(t)
	var ran atomic.Int64
	inner := patientOnce(locks, "billing", byKey, counting(&ran))
	outer := patientOnce(locks, "billing", byKey, func(ctx context.Context, m *message) error {
		for range 2 {
			want(t, inner(ctx, m), msglock.Ack)
		}
		want(t, inner(t.Context(), m), msglock.Nack)
		return nil
	})
	want(t, outer(t.Context(), &message{Key: "1"}), msglock.Ack)
	want(t, inner(t.Context(), &message{Key: "1"}), msglock.Ack)
	if ran.Load() != 2 {
		t.Errorf("handled %d times", ran.Load())
	}
}

// TestOperator: a parked message is resolved or forgotten by its key, as it was seen.
func TestOperator(t *testing.T) {
	t.Parallel()
	locks, _ := newLocks(t)
	var ran atomic.Int64
	once, err := newPatientOnce(locks, "billing", byKey, func(ctx context.Context, _ *message) error {
		if ran.Add(1) == 1 {
			return core.Hold(ctx, "ask the bank")
		}
		return nil
	}, msglock.WithKeySecret([]byte("0123456789abcdef")))
	if err != nil {
		t.Fatal(err)
	}
	ctx, m := t.Context(), &message{Key: "order-1"}
	want(t, once.Handle(ctx, m), msglock.Park)
	want(t, once.Handle(ctx, m), msglock.Park)
	seen, err := once.Peek(ctx, "order-1")
	if err != nil || seen.State != core.StateUnknown || seen.Label != "billing" || !strings.Contains(seen.Note, "TestOperator") {
		t.Fatalf("%+v, %v", seen, err)
	}
	if err := once.Forget(ctx, core.Record{Key: "other"}); !errors.Is(err, core.ErrInvalidName) {
		t.Error(err)
	}
	if err := once.Resolve(ctx, core.Record{Key: "other"}, nil); !errors.Is(err, core.ErrInvalidName) {
		t.Error(err)
	}
	if err := once.Forget(ctx, seen); err != nil {
		t.Fatal(err)
	}
	if err := once.Resolve(ctx, seen, nil); !errors.Is(err, core.ErrChanged) {
		t.Error(err)
	}
	want(t, once.Handle(ctx, m), msglock.Ack)
	if ran.Load() != 2 {
		t.Errorf("handled %d times", ran.Load())
	}
}

// TestComparePayload: another message under a known key is parked and logged, alone and in a batch. A message that is sent again with
// another time is a duplicate.
func TestComparePayload(t *testing.T) {
	t.Parallel()
	locks, log := newLocks(t)
	type refund struct {
		order, amount string
		sent          time.Time
	}
	order := func(_ context.Context, r refund) (string, error) { return r.order, nil }
	amount := msglock.ComparePayload(func(r refund) []byte {
		if r.amount == "" {
			panic("no amount")
		}
		return []byte(r.amount)
	})
	var ran []refund
	handle := func(_ context.Context, r refund) error {
		ran = append(ran, r)
		return nil
	}
	once, ctx := patientOnce(locks, "refunds", order, handle, amount), t.Context()
	batch := msglock.OnceBatch(locks, "refunds", order, handle, patient([]msglock.Option{amount})...)
	sent := refund{"7", "10", time.Now()}
	want(t, once(ctx, sent), msglock.Ack)
	again := sent
	again.sent = sent.sent.Add(time.Second)
	want(t, once(ctx, again), msglock.Ack)
	other := refund{"7", "20", sent.sent}
	err := once(ctx, other)
	want(t, err, msglock.Park)
	if !errors.Is(err, core.ErrFingerprintMismatch) || !strings.Contains(log.String(), "reason=key-reused") {
		t.Errorf("%v\n%s", err, log)
	}
	errs := batch(ctx, []refund{again, other, {"8", "20", sent.sent}})
	for i, action := range []msglock.Action{msglock.Ack, msglock.Park, msglock.Ack} {
		want(t, errs[i], action)
	}
	err = once(ctx, refund{order: "9"})
	want(t, err, msglock.Park)
	if !errors.Is(err, msglock.ErrNoKey) {
		t.Error(err)
	}
	if len(ran) != 2 {
		t.Errorf("handled: %v", ran)
	}
}

func first(context.Context, *message) error  { return nil }
func second(context.Context, *message) error { return nil }

// TestOtherHandler: two handlers with different jobs under one consumer name are warned of. Behind one handler the line is an info, as a
// duplicate is expected; but another message under the key is lost, and nothing else says so.
func TestOtherHandler(t *testing.T) {
	t.Parallel()
	locks, log := newLocks(t)
	for _, handler := range []func(context.Context, *message) error{first, first} {
		want(t, patientOnce(locks, "billing", byKey, handler)(t.Context(), &message{Key: "1"}), msglock.Ack)
	}
	if text := log.String(); strings.Contains(text, "WARN") || strings.Count(text, "level=INFO") != 1 ||
		!strings.Contains(text, "an earlier message with its key has completed") {
		t.Error(log)
	}
	want(t, patientOnce(locks, "billing", byKey, second)(t.Context(), &message{Key: "1"}), msglock.Ack)
	if text := log.String(); !strings.Contains(text, "another handler") || !strings.Contains(text, "msglock_test.first") {
		t.Error(text)
	}
}

// TestOnceValue: the value is returned for each message of the key, and what cannot be replayed is parked.
func TestOnceValue(t *testing.T) {
	t.Parallel()
	locks, _ := newLocks(t)
	type receipt struct{ Order, Lines []string }
	var ran atomic.Int64
	handle := patientValue(locks, "billing", byKey, func(_ context.Context, m *message) (receipt, error) {
		if ran.Add(1); m.Key == "long" {
			return receipt{Lines: []string{strings.Repeat("x", 2000)}}, nil
		}
		return receipt{Order: []string{m.Key}}, nil
	}, core.WithMaxValue(1000))
	for range 3 {
		got, err := handle(t.Context(), &message{Key: "order-1"})
		if err != nil || len(got.Order) != 1 || got.Order[0] != "order-1" {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if got, err := handle(t.Context(), &message{Key: "long"}); err != nil || len(got.Lines) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	_, err := handle(t.Context(), &message{Key: "long"})
	want(t, err, msglock.Park)
	if !errors.Is(err, core.ErrCompleted) || ran.Load() != 2 {
		t.Errorf("%v, handled %d times", err, ran.Load())
	}
	early := patientValue(locks, "billing", byKey, func(ctx context.Context, _ *message) (int, error) {
		_ = core.Complete(ctx)
		return 0, errHandler
	})
	for range 2 { // it has no value to continue with
		_, err := early(t.Context(), &message{Key: "early"})
		want(t, err, msglock.Park)
		if !errors.Is(err, core.ErrCompleted) {
			t.Error(err)
		}
	}
	numbers := patientValue(locks, "billing", byKey, func(context.Context, *message) (int, error) { return 1, nil })
	if _, err = numbers(t.Context(), &message{Key: "order-1"}); err == nil {
		t.Error("a value of another type was replayed")
	}
	want(t, err, msglock.Park)
}

// TestSuppliedResult: an operator supplies a result that was not recorded, and the message is acknowledged with it. Its error says what
// is lacking. A value that is no JSON is refused.
func TestSuppliedResult(t *testing.T) {
	t.Parallel()
	locks, log := newLocks(t)
	type receipt struct{ Cents int }
	handle := patientValue(locks, "billing", byKey, func(ctx context.Context, m *message) (*receipt, error) {
		if m.Key == "early" {
			return nil, errors.Join(core.Complete(ctx), errHandler)
		}
		return &receipt{7}, nil
	}, core.WithMaxValue(5))
	guard, err := newPatientOnce(locks, "billing", byKey, first)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"early", "long"} {
		_, _ = handle(t.Context(), &message{Key: key})
		_, err := handle(t.Context(), &message{Key: key})
		want(t, err, msglock.Park)
		for _, text := range []string{err.Error(), log.String()} {
			if !strings.Contains(text, "its result was not recorded") {
				t.Errorf("%s: %s", key, text)
			}
		}
		seen, err := guard.Peek(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if err := guard.Resolve(t.Context(), seen, []byte("paid")); !errors.Is(err, core.ErrInvalidOption) {
			t.Errorf("%s: Resolve without JSON: %v", key, err)
		}
		if err := guard.Resolve(t.Context(), seen, []byte(`{"Cents":8}`)); err != nil {
			t.Errorf("%s: %v", key, err)
		}
		if got, err := handle(t.Context(), &message{Key: key}); err != nil || got == nil || got.Cents != 8 {
			t.Errorf("%s: %+v, %v", key, got, err)
		}
	}
	numbers := patientValue(locks, "billing", byKey, func(context.Context, *message) ([]receipt, error) { return nil, nil })
	got, err := numbers(t.Context(), &message{Key: "early"})
	want(t, err, msglock.Park)
	if got != nil || !strings.Contains(err.Error(), "cannot unmarshal object into") {
		t.Errorf("%v, %v", got, err)
	}
}

// TestHeartbeat: it runs while the message is handled, whatever it returns, and never after that.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	locks, log := newLocks(t)
	var beats atomic.Int64
	enough := make(chan struct{})
	handle := patientOnce(locks, "billing", byKey, func(context.Context, *message) error {
		<-enough
		return nil
	}, msglock.WithHeartbeat(time.Millisecond, func(_ context.Context, m *message) error {
		switch n := beats.Add(1); {
		case m.Key != "1":
			t.Errorf("heartbeat of %q", m.Key)
		case n == 2:
			panic("the heartbeat panics")
		case n == 5:
			close(enough)
		}
		return errHandler
	}))
	want(t, handle(t.Context(), &message{Key: "1"}), msglock.Ack)
	n := beats.Load()
	want(t, handle(t.Context(), &message{Key: "1"}), msglock.Ack)
	if beats.Load() > n+100 || !strings.Contains(log.String(), "heartbeat failed") {
		t.Errorf("%d heartbeats:\n%s", beats.Load(), log)
	}
}

// TestHeartbeatWithoutKey: a message that is handled unguarded has heartbeats too, because its delivery expires like any other.
func TestHeartbeatWithoutKey(t *testing.T) {
	t.Parallel()
	locks, _ := newLocks(t)
	enough := make(chan struct{})
	beaten := sync.OnceFunc(func() { close(enough) })
	handle := patientOnce(locks, "billing", byKey, func(ctx context.Context, _ *message) error {
		select {
		case <-enough:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}, msglock.OptionalKey(), msglock.WithHeartbeat(time.Millisecond, func(context.Context, *message) error {
		beaten()
		return nil
	}))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	want(t, handle(ctx, &message{}), msglock.Ack)
}

// TestHooks: hooks have the consumer, and the time when the message was sent.
func TestHooks(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var starts []core.RunStart
	var nots []core.NotRun
	locks, log := newLocks(t, core.WithHooks(core.Hooks{
		RunStart: func(_ context.Context, s core.RunStart) context.Context {
			mu.Lock()
			defer mu.Unlock()
			starts = append(starts, s)
			return nil
		},
		NotRun: func(_ context.Context, n core.NotRun) { nots = append(nots, n) },
	}))
	sent := time.Now().Add(-time.Minute)
	handle := patientOnce(locks, "billing", byKey, first, msglock.WithSentTime(func(m *message) time.Time { return m.Sent }))
	for range 2 {
		want(t, handle(t.Context(), &message{Key: "1", Sent: sent}), msglock.Ack)
	}
	if len(starts) != 1 || starts[0].Place != "message" || starts[0].Label != "billing" || !starts[0].Due.Equal(sent) {
		t.Errorf("%+v", starts)
	}
	if len(nots) != 1 || nots[0].Reason != core.ReasonReplayed {
		t.Errorf("%+v", nots)
	}
	panics := msglock.WithSentTime(func(*message) time.Time { panic("no such header") })
	lock := patientExclusive(locks.Mutex, byKey, second, panics)
	for range 2 {
		want(t, lock(t.Context(), &message{Key: "1"}), msglock.Ack) // without an age
	}
	if n := strings.Count(log.String(), "the message has no age"); n != 1 {
		t.Errorf("%d lines of the panic:\n%s", n, log)
	}
	if len(starts) != 3 || starts[1].Label != "msglock_test.second" || !starts[1].Due.IsZero() {
		t.Errorf("%+v", starts)
	}
}
