package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// A guard runs messages once. It reports to the hooks of the client, as the guards of holdfast for HTTP, cron and asynq do, so
// the same metrics, spans and alerts cover it.
type guard struct {
	hooks core.Hooks // here all of them are set
	label string     // the kind of the messages, one of few
	limit time.Duration
}

// handle runs a message unless an earlier run of its key has completed, is running, or has an unknown outcome.
func (g guard) handle(ctx context.Context, once *core.Once, sent time.Time, run func(context.Context) error) {
	arrived, message := time.Now(), core.Work{Place: "message", Label: g.label, Due: sent}
	attempt, err := once.Begin(ctx)
	if err != nil {
		not := core.NotRun{Work: message, Reason: reason(err), Waited: time.Since(arrived), Err: err}
		if completed := new(core.CompletedError); errors.As(err, &completed) {
			not.Attempt, not.Err = completed.Record.Attempt, nil
		}
		g.hooks.NotRun(ctx, not)
		return
	}
	message.KeyHash = core.KeyHash(attempt.Context())
	ctx = g.hooks.RunStart(attempt.Context(), core.RunStart{
		Work: message, Token: attempt.Token(), Attempt: attempt.Number(), Waited: time.Since(arrived),
	})
	overrun := time.AfterFunc(g.limit, func() { g.hooks.Incident(ctx, core.Incident{Work: message, Kind: core.IncidentOverrun}) })
	began := time.Now()
	failed := run(ctx)
	end := core.RunEnd{Work: message, Token: attempt.Token(), Attempt: attempt.Number(), Took: time.Since(began), Err: failed}
	overrun.Stop()
	if failed == nil {
		end.State, err = core.StateCompleted, attempt.Complete(context.WithoutCancel(ctx), nil)
	} else {
		end.State, err = core.StateUnknown, attempt.Hold(context.WithoutCancel(ctx), "the handler has failed")
	}
	if err != nil {
		g.hooks.Incident(ctx, core.Incident{Work: message, Kind: core.IncidentUnrecorded, Err: err})
	}
	g.hooks.RunEnd(ctx, end)
}

// reason returns why a message does not run, in a word that metrics can have as a label.
func reason(err error) string {
	for of, reason := range map[error]string{
		core.ErrCompleted: core.ReasonReplayed, core.ErrInProgress: "busy", core.ErrOutcomeUnknown: "outcome-unknown",
		core.ErrUnavailable: "unavailable",
	} {
		if errors.Is(err, of) {
			return reason
		}
	}
	return "refused"
}

// messages numbers them, for both replicas.
var messages atomic.Int64

// mail gets each message several times. Some fail, and some take too long.
func mail(hooks core.Hooks) job {
	g := guard{hooks: hooks, label: "mail", limit: 20 * time.Millisecond}
	return func(ctx context.Context, locks *core.Client, _ int) error {
		n := messages.Add(1) / 3
		once := locks.Once(fmt.Sprintf("mail:%d", n), core.WithRetention(time.Minute))
		g.handle(ctx, once, time.Now(), func(ctx context.Context) error {
			switch {
			case n%20 == 0:
				return errors.New("the mail server did not answer")
			case n%20 == 1:
				return work(2 * g.limit)(ctx)
			}
			return work(5 * time.Millisecond)(ctx)
		})
		return nil
	}
}
