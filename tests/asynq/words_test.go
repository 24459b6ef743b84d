package asynq_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
)

// words are what a handler may say of its run.
var words = map[string][]func(context.Context) error{
	"":                  nil,
	"Complete":          {asynqlock.Complete},
	"Release":           {asynqlock.Release},
	"Hold":              {asynqlock.Hold},
	"Hold, Complete":    {asynqlock.Hold, asynqlock.Complete},
	"Complete, Release": {asynqlock.Complete, asynqlock.Release},
}

// meaning is what the record says after a run, and what asynq is told.
type meaning struct {
	state    core.State
	archived bool
	own      bool // the handler's error
}

// means is the rule. The last word counts, then how the handler ended, then the policy.
func means(word string, returned error, panics, atMostOnce bool) meaning {
	switch word {
	case "Complete", "Hold, Complete":
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

// TestWords: all words, ends and policies.
func TestWords(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, atMostOnce := range []bool{false, true} {
		var opts []asynqlock.Option
		if atMostOnce {
			opts = append(opts, asynqlock.AtMostOnce())
		}
		guard := asynqlock.Once(d.locks, asynqlock.ByTaskID(), opts...)
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

func (d *desk) wantMeaning(info *asynq.TaskInfo, want meaning, panics bool, guard asynq.MiddlewareFunc, h asynq.HandlerFunc) {
	d.t.Helper()
	var err error
	paniced := panicOf(func() { err = d.deliver(info, receipt("7"), h, guard) })
	if (paniced == "end") != panics {
		d.t.Errorf("%s: panic %q", info.ID, paniced)
	}
	if !panics && (errors.Is(err, errOwn) != want.own || errors.Is(err, asynq.SkipRetry) != want.archived ||
		errors.Is(err, core.ErrOutcomeUnknown) != want.archived || (err == nil) != (!want.own && !want.archived)) {
		d.t.Errorf("%s: %v, want %+v", info.ID, err, want)
	}
	record, err := asynqlock.Peek(d.t.Context(), d.locks, asynqlock.ByTaskID(), info)
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

// TestWordsAreWrittenAtOnce: they count although the handler never ends, as if its process had died.
func TestWordsAreWrittenAtOnce(t *testing.T) {
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
		"nothing":  {[]asynqlock.Option{asynqlock.AtMostOnce()}, core.ErrOutcomeUnknown, false},
		"Release":  {[]asynqlock.Option{asynqlock.AtMostOnce()}, core.ErrOutcomeUnknown, false}, // its word is not enough
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
		d.lapse(asynqlock.KeyHash(busy.ctx))
		ran := false
		err := d.deliver(info, receipt("7"), func(context.Context, *asynq.Task) error { ran = true; return nil }, guard)
		if !errors.Is(err, test.want) || ran != test.runs || errors.Is(err, asynq.SkipRetry) != (test.want != nil) {
			t.Errorf("%s: ran %v, %v", word, ran, err)
		}
		_ = busy.release() // it came too late
	}
}
