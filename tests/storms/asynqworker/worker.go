package asynqworker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
)

// worker is a process with a server.
type worker struct {
	order  Order
	events *Line
	runs   asynqlock.Runs
	stop   context.CancelCauseFunc

	unconfirmed sync.Map // runs that were not recorded
}

// config is the config of a server that logs nothing, and polls often unless it should have asynq's defaults.
func (w *worker) config() asynq.Config {
	cfg := asynq.Config{
		Concurrency: w.order.Concurrency, Queues: Queues, LogLevel: asynq.FatalLevel, ShutdownTimeout: ended,
	}
	if !w.order.Defaults {
		cfg.TaskCheckInterval, cfg.DelayedTaskCheckInterval = 20*time.Millisecond, 100*time.Millisecond
		cfg.RetryDelayFunc = func(int, error, *asynq.Task) time.Duration { return time.Second }
	}
	asynqlock.Configure(&cfg)
	return cfg
}

func (w *worker) handler(locks *core.Client) (asynq.Handler, error) {
	mux := asynq.NewServeMux()
	if !w.order.Unguarded {
		opts := []asynqlock.Option{core.WithTTL(w.order.TTL), asynqlock.WithRuns(&w.runs)}
		if !w.order.Defaults {
			opts = append(opts, asynqlock.WithRetryIn(time.Second))
		}
		guard, err := NewGuard(locks, opts...)
		if err != nil {
			return nil, err
		}
		mux.Use(guard.Wrap)
	}
	mux.HandleFunc(Kind, w.process)
	return mux, nil
}

var errStale = errors.New("refused by the table: a greater token was seen")

// process is the handler: it asks, takes its time, and has an effect.
func (w *worker) process(ctx context.Context, t *asynq.Task) error {
	line, err := Open(w.order.Table)
	if err != nil {
		w.stop(err)
		return err
	}
	defer line.Close()
	run, err := w.run(ctx, t)
	if err != nil {
		return err
	}
	if w.tell(line, run) == Stale {
		return errStale
	}
	if err := w.work(ctx); err != nil {
		return err
	}
	run.Kind = Effect
	if w.tell(line, run) == Stale {
		return errStale
	}
	return nil
}

// run is the beginning of one.
func (w *worker) run(ctx context.Context, t *asynq.Task) (Entry, error) {
	e := Entry{Kind: Begin, KeyHash: core.KeyHash(ctx)}
	if a, ok := core.AttemptFrom(ctx); ok {
		e.Attempt = a.Number()
	}
	e.Token, _ = core.TokenFrom(ctx)
	e.Task = taskOf(ctx)
	err := json.Unmarshal(t.Payload(), &struct {
		Order *string `json:"order"`
	}{&e.Order})
	return e, err
}

func (w *worker) work(ctx context.Context) error {
	if w.order.Stubborn {
		ctx = context.WithoutCancel(ctx)
	}
	timer := time.NewTimer(w.order.Least + rand.N(w.order.Most-w.order.Least))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// tell ends the server if the table cannot be told: the test would be worth nothing.
func (w *worker) tell(line *Line, e Entry) Verdict {
	e.Server, e.PID = w.order.Server, os.Getpid()
	v, err := line.Tell(e)
	if err != nil {
		w.stop(fmt.Errorf("table: %w", err))
		return Stale
	}
	return v
}

// hooks tell the table what becomes of tasks.
func (w *worker) hooks() core.Hooks {
	event := func(ctx context.Context, kind EntryKind, hash string, err error) {
		e := Entry{Kind: kind, Task: taskOf(ctx), KeyHash: hash}
		if err != nil {
			e.Reason = err.Error()
		}
		w.tell(w.events, e)
	}
	return core.Hooks{
		NotRun: func(ctx context.Context, n core.NotRun) {
			switch {
			case n.Reason == core.ReasonReplayed:
				event(ctx, Replayed, n.KeyHash, nil)
			case n.RetryAfter > 0:
				event(ctx, Deferred, n.KeyHash, n.Err)
			case n.Reason != asynqlock.ReasonEnded:
				event(ctx, Refused, n.KeyHash, n.Err)
			}
		},
		Incident: func(ctx context.Context, i core.Incident) {
			// A run that is stale is finished too, if the other attempt's record says that it took effect.
			if i.Kind == core.IncidentUnrecorded || errors.Is(i.Err, core.ErrStale) {
				w.unconfirmed.Store(taskOf(ctx)+"/"+i.KeyHash, nil)
			}
			if i.Kind != core.IncidentOverrun {
				event(ctx, Failed, i.KeyHash, i.Err)
			}
		},
		RunEnd: func(ctx context.Context, end core.RunEnd) {
			_, unconfirmed := w.unconfirmed.LoadAndDelete(taskOf(ctx) + "/" + end.KeyHash)
			w.tell(w.events, Entry{
				Kind: Finished, Task: taskOf(ctx), KeyHash: end.KeyHash, Attempt: end.Attempt,
				Recorded: end.State == core.StateCompleted && end.Err == nil && !unconfirmed,
			})
		},
	}
}

// taskOf names the task of a context of asynq.
func taskOf(ctx context.Context) string {
	queue, _ := asynq.GetQueueName(ctx)
	id, _ := asynq.GetTaskID(ctx)
	return queue + "/" + id
}
