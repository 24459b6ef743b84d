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

// config is that of a server which is quiet, and looks often unless it is to have asynq's defaults.
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

func (w *worker) handler(locks *core.Client) asynq.Handler {
	mux := asynq.NewServeMux()
	if !w.order.Unguarded {
		key, retention := Guard()
		opts := []asynqlock.Option{
			retention, core.WithTTL(w.order.TTL), asynqlock.WithRuns(&w.runs), asynqlock.WithHooks(w.hooks()),
			asynqlock.WithLogger(nil),
		}
		if !w.order.Defaults {
			opts = append(opts, asynqlock.WithRetryIn(time.Second))
		}
		mux.Use(asynqlock.Once(locks, key, opts...))
	}
	mux.HandleFunc(Kind, w.process)
	return mux
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
	e := Entry{Kind: Begin, KeyHash: core.KeyHash(ctx), Attempt: asynqlock.Attempt(ctx)}
	e.Token, _ = core.TokenFrom(ctx)
	queue, _ := asynq.GetQueueName(ctx)
	id, _ := asynq.GetTaskID(ctx)
	e.Task = queue + "/" + id
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
func (w *worker) hooks() asynqlock.Hooks {
	event := func(kind EntryKind, t asynqlock.Task, hash string, err error) {
		e := Entry{Kind: kind, Task: t.Queue + "/" + t.ID, KeyHash: hash}
		if err != nil {
			e.Reason = err.Error()
		}
		w.tell(w.events, e)
	}
	return asynqlock.Hooks{
		Replayed: func(_ context.Context, r asynqlock.Replayed) { event(Replayed, r.Task, r.KeyHash, nil) },
		Deferred: func(_ context.Context, d asynqlock.Deferred) { event(Deferred, d.Task, d.KeyHash, d.Err) },
		Refused:  func(_ context.Context, r asynqlock.Refused) { event(Refused, r.Task, r.KeyHash, r.Err) },
		Failed: func(_ context.Context, f asynqlock.Failure) {
			// A run that is stale is finished too, if the other attempt's record says that it took effect.
			if f.Operation == "finish" || errors.Is(f.Err, core.ErrStale) {
				w.unconfirmed.Store(runOf(f.Task, f.KeyHash), nil)
			}
			event(Failed, f.Task, f.KeyHash, f.Err)
		},
		Finished: func(_ context.Context, f asynqlock.Finished) {
			_, unconfirmed := w.unconfirmed.LoadAndDelete(runOf(f.Task, f.KeyHash))
			w.tell(w.events, Entry{
				Kind: Finished, Task: f.Task.Queue + "/" + f.Task.ID, KeyHash: f.KeyHash, Attempt: f.Attempt,
				Recorded: f.State == core.StateCompleted && f.Err == nil && !unconfirmed,
			})
		},
	}
}

// runOf names a run among those of one server.
func runOf(task asynqlock.Task, keyHash string) string {
	return task.Queue + "/" + task.ID + "/" + keyHash
}
