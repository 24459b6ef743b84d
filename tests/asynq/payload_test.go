package asynq_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
)

// again is a handler of a task that must not run.
func again(context.Context, *asynq.Task) error { return errors.New("it runs again") }

// stamped is a task for one order. Header and payload differ from those of another one by when it was sent.
func stamped(sentAt string) *asynq.Task {
	return asynq.NewTaskWithHeaders(kind, []byte(`{"order":7,"sent_at":"`+sentAt+`"}`), map[string]string{"K": "7"})
}

// ownOrder is a key function of a user, which reads the payload with ByPayload.
func ownOrder(ctx context.Context, t *asynq.Task) (string, error) {
	key, err := asynqlock.ByPayload("order")(ctx, t)
	return "own " + key, err
}

// TestPayloadIsComparedByKey: a key that names what makes two tasks one lets other bytes differ. For every other key
// they are a mistake of the producer. Nothing runs twice either way.
func TestPayloadIsComparedByKey(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	order, header := asynqlock.ByPayload("order"), asynqlock.ByHeader("K")
	for name, test := range map[string]struct {
		key      asynqlock.KeyFunc
		opts     []asynqlock.Option
		mismatch bool
	}{
		"fields":                 {order, nil, false},
		"fields in Keys":         {asynqlock.Keys(asynqlock.ByType(), asynqlock.Keys(header, order)), nil, false},
		"fields in PerPeriod":    {asynqlock.PerPeriod(order, 365*24*time.Hour), nil, false},
		"type in PerPeriod":      {asynqlock.PerPeriod(asynqlock.ByType(), 365*24*time.Hour), nil, false},
		"own, of fields":         {ownOrder, nil, false},
		"header":                 {header, nil, true},
		"type":                   {asynqlock.ByType(), nil, true},
		"own":                    {fixed("7"), nil, true},
		"header, but ignored":    {header, []asynqlock.Option{asynqlock.IgnorePayload()}, false},
		"fields, but compared":   {order, []asynqlock.Option{asynqlock.ComparePayload()}, true},
		"fields, at most once":   {order, []asynqlock.Option{asynqlock.AtMostOnce()}, false},
		"compared, at most once": {order, []asynqlock.Option{asynqlock.AtMostOnce(), asynqlock.ComparePayload()}, true},
	} {
		t.Run(name, func(t *testing.T) {
			guard := asynqlock.Once(d.locks, test.key, append(test.opts, asynqlock.WithKeySecret([]byte("of "+name+strings.Repeat(" ", 16))))...)
			wantNil(t, d.deliver(delivery("1"), stamped("9:00"), func(ctx context.Context, _ *asynq.Task) error {
				err := d.deliver(delivery("2"), stamped("9:01"), again, guard)
				if test.mismatch {
					wantErrors(t, err, core.ErrFingerprintMismatch, asynq.SkipRetry)
				} else {
					wantDeferred(t, err, core.ErrInProgress)
				}
				return nil
			}, guard))
			err := d.deliver(delivery("2"), stamped("9:01"), again, guard)
			if test.mismatch {
				wantErrors(t, err, core.ErrFingerprintMismatch, asynq.SkipRetry)
			} else {
				wantNil(t, err)
			}
			wantNil(t, d.deliver(delivery("3"), stamped("9:00"), again, guard))
		})
	}
}

// TestOtherTaskWithTheID: one ID in a queue is one task, so another payload is a mistake.
func TestOtherTaskWithTheID(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	guard := asynqlock.Once(d.locks, asynqlock.ByTaskID())
	wantNil(t, d.deliver(delivery("1"), stamped("9:00"), nothing, guard))
	wantErrors(t, d.deliver(delivery("1"), stamped("9:01"), again, guard), core.ErrFingerprintMismatch, asynq.SkipRetry)
	wantNil(t, d.deliver(delivery("1"), stamped("9:00"), again, guard))
}

// TestMismatchNamesTaskAndOption: what asynq stores with the archived task says which one it was and what decides.
func TestMismatchNamesTaskAndOption(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for option, opts := range map[string][]asynqlock.Option{
		"IgnorePayload()": nil, "ComparePayload()": {asynqlock.ComparePayload()},
	} {
		guard := asynqlock.Once(d.locks, asynqlock.ByHeader("K"), opts...)
		wantNil(t, d.deliver(delivery("1"), stamped("9:00"), nothing, guard))
		err := d.deliver(delivery("the second"), stamped("9:01"), again, guard)
		wantErrors(t, err, core.ErrFingerprintMismatch, asynq.SkipRetry)
		for _, part := range []string{`task "the second"`, `type "` + kind + `"`, `queue "default"`, option} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%v, want %s in it", err, part)
			}
		}
		if strings.Contains(err.Error(), "sent_at") || strings.Contains(err.Error(), "9:0") {
			t.Errorf("the payload is told: %v", err)
		}
	}
}

// TestMismatchLeavesTheRecord: an operator finds what the first task has recorded.
func TestMismatchLeavesTheRecord(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	key := asynqlock.ByHeader("K")
	guard := asynqlock.Once(d.locks, key)
	first := stamped("9:00")
	wantNil(t, d.deliver(delivery("1"), first, func(ctx context.Context, _ *asynq.Task) error {
		return asynqlock.SetResult(ctx, []byte("1"))
	}, guard))
	for range 2 {
		wantErrors(t, d.deliver(delivery("2"), stamped("9:01"), again, guard), core.ErrFingerprintMismatch)
	}
	info := delivery("1", ofKind)
	info.Payload, info.Headers = first.Payload(), first.Headers()
	if r, err := asynqlock.Peek(t.Context(), d.locks, key, info); err != nil || string(r.Value) != "1" || r.Attempt != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}
