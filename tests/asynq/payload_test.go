package asynq_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
)

// again is a handler of a task that must not run.
func again(context.Context, *asynq.Task) error { return errors.New("it runs again") }

// stamped is a task for one order. Header and payload differ from another one by when it was sent.
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
		"header, but ignored":    {header, []asynqlock.Option{asynqlock.ComparePayload(false)}, false},
		"fields, but compared":   {order, []asynqlock.Option{asynqlock.ComparePayload(true)}, true},
		"fields, at most once":   {order, []asynqlock.Option{core.WithFailurePolicy(core.HoldFailures)}, false},
		"compared, at most once": {order, []asynqlock.Option{core.WithFailurePolicy(core.HoldFailures), asynqlock.ComparePayload(true)}, true},
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
		"ComparePayload(false)": nil, "ComparePayload(true)": {asynqlock.ComparePayload(true)},
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
	guard := newOnce(t, d.locks, key)
	first := stamped("9:00")
	wantNil(t, d.deliver(delivery("1"), first, func(ctx context.Context, _ *asynq.Task) error {
		return asynqlock.SetResult(ctx, []byte("1"))
	}, guard.Wrap))
	for range 2 {
		wantErrors(t, d.deliver(delivery("2"), stamped("9:01"), again, guard.Wrap), core.ErrFingerprintMismatch)
	}
	info := delivery("1", ofKind)
	info.Payload, info.Headers = first.Payload(), first.Headers()
	if r, err := guard.Peek(t.Context(), info); err != nil || string(r.Value) != "1" || r.Attempt != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// words are what a handler may say of its run.
var words = map[string][]func(context.Context) error{
	"":                  nil,
	"Complete":          {core.Complete},
	"Release":           {core.Release},
	"Hold":              {hold},
	"Hold, Complete":    {hold, core.Complete},
	"Complete, Release": {core.Complete, releaseRefused},
}

// meaning is what the record says after a run, and what asynq is told.
type meaning struct {
	state    core.State
	archived bool
	own      bool // the handler's error
}

// releaseRefused releases a run that has completed, which is refused.
func releaseRefused(ctx context.Context) error {
	if err := core.Release(ctx); !errors.Is(err, core.ErrCompleted) {
		return fmt.Errorf("released: %w", err)
	}
	return nil
}

// means is the rule. The last word counts, unless it releases what has completed, then how the handler ended, then the policy.
func means(word string, returned error, panics, atMostOnce bool) meaning {
	switch word {
	case "Complete", "Hold, Complete", "Complete, Release":
		return meaning{state: core.StateCompleted}
	case "Hold":
		return meaning{core.StateUnknown, true, returned != nil}
	case "":
		if returned == nil && !panics {
			return meaning{state: core.StateCompleted}
		}
		if atMostOnce {
			return meaning{core.StateUnknown, true, returned != nil}
		}
	}
	return meaning{core.StateNone, false, returned != nil}
}

// TestDispositions: all dispositions, ends and policies.
func TestDispositions(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, atMostOnce := range []bool{false, true} {
		var opts []asynqlock.Option
		if atMostOnce {
			opts = append(opts, core.WithFailurePolicy(core.HoldFailures))
		}
		guard := newOnce(t, d.locks, asynqlock.ByTaskID(), opts...)
		for word, say := range words {
			for end, returned := range map[string]error{"nil": nil, "error": errOwn, "panic": nil} {
				info := delivery(fmt.Sprint(word, end, atMostOnce), ofKind)
				d.wantMeaning(info, means(word, returned, end == "panic", atMostOnce), end == "panic", guard,
					func(ctx context.Context, _ *asynq.Task) error {
						for _, w := range say {
							wantNil(t, w(ctx))
						}
						if end == "panic" {
							panic("end")
						}
						return returned
					})
			}
		}
	}
}

func (d *desk) wantMeaning(info *asynq.TaskInfo, want meaning, panics bool, guard *asynqlock.Guard, h asynq.HandlerFunc) {
	d.t.Helper()
	var err error
	paniced := panicOf(func() { err = d.deliver(info, receipt("7"), h, guard.Wrap) })
	if (paniced == "end") != panics {
		d.t.Errorf("%s: panic %q", info.ID, paniced)
	}
	if !panics && (errors.Is(err, errOwn) != want.own || errors.Is(err, asynq.SkipRetry) != want.archived ||
		errors.Is(err, core.ErrOutcomeUnknown) != want.archived || (err == nil) != (!want.own && !want.archived)) {
		d.t.Errorf("%s: %v, want %+v", info.ID, err, want)
	}
	record, err := guard.Peek(d.t.Context(), info)
	if err != nil || record.State != want.state {
		d.t.Errorf("%s: %+v, %v, want %+v", info.ID, record, err, want)
	}
}

// lapse ends the lease of a run that is not renewed any more, in Redis, as time would.
func (d *desk) lapse(hash string) {
	d.t.Helper()
	key := "holdfast:once:{lock:asynq:" + hash + "}"
	if !d.rdb.HExists(d.t.Context(), key, "ttl").Val() {
		d.t.Fatalf("%s has no lease", key)
	}
	d.rdb.HSet(d.t.Context(), key, "deadline", 1)
}

// TestDeclarationsAreWrittenAtOnce: they count although the handler never ends, as if its process had died.
func TestDeclarationsAreWrittenAtOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for word, test := range map[string]struct {
		opts []asynqlock.Option
		want error
		runs bool
	}{
		"":         {nil, nil, true},
		"Complete": {nil, nil, false},
		"Hold":     {nil, core.ErrOutcomeUnknown, false},
		"nothing":  {[]asynqlock.Option{core.WithFailurePolicy(core.HoldFailures)}, core.ErrOutcomeUnknown, false},
		"Release":  {[]asynqlock.Option{core.WithFailurePolicy(core.HoldFailures)}, core.ErrOutcomeUnknown, false}, // its word is not enough
	} {
		var runs asynqlock.Runs
		guard := asynqlock.Once(d.locks, asynqlock.ByTaskID(), append(test.opts, asynqlock.WithRuns(&runs))...)
		info := delivery("of " + word)
		busy := d.occupy(info, receipt("7"), guard)
		for _, say := range words[word] {
			wantNil(t, say(busy.ctx))
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		wantErrors(t, runs.Drain(over), asynqlock.ErrStillRunning)
		wantDeferred(t, d.deliver(info, receipt("7"), nothing, guard), core.ErrInProgress)
		d.lapse(core.KeyHash(busy.ctx))
		ran := false
		err := d.deliver(info, receipt("7"), func(context.Context, *asynq.Task) error { ran = true; return nil }, guard)
		if !errors.Is(err, test.want) || ran != test.runs || errors.Is(err, asynq.SkipRetry) != (test.want != nil) {
			t.Errorf("%s: ran %v, %v", word, ran, err)
		}
		_ = busy.release() // it came too late
	}
}

// hold is [core.Hold] with a reason.
func hold(ctx context.Context) error { return core.Hold(ctx, "the handler says so") }
