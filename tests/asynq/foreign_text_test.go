package asynq_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// Bounds of one text, and of a line of the log, which may have several.
const (
	mostText = 1500
	mostLine = 3000
)

// foreignTasks are tasks with a text in each place that a producer chooses.
func foreignTasks(text string) map[*asynq.TaskInfo]*asynq.Task {
	tasks := make(map[*asynq.TaskInfo]*asynq.Task)
	valid, err := json.Marshal(map[string]string{"order": text})
	if err != nil {
		panic(err)
	}
	for i, payload := range []string{string(valid), text, `{"` + text + `":1}`, `{"order":{"` + text + `":1}}`} {
		info := &asynq.TaskInfo{ID: []string{"", "other"}[i%2] + text, Queue: text, MaxRetry: 25}
		tasks[info] = asynq.NewTaskWithHeaders(text, []byte(payload), map[string]string{"K": text})
	}
	return tasks
}

// overwriteAll writes a text to all keys of guards: to the fields of records, and then, with wholly, in place of each key.
func overwriteAll(ctx context.Context, t *testing.T, rdb *redis.Client, text string, wholly bool) {
	t.Helper()
	keys := rdb.Keys(ctx, "*").Val()
	if len(keys) == 0 {
		t.Error("there are no keys")
	}
	for _, key := range keys {
		if rdb.Type(ctx, key).Val() == "hash" && !wholly {
			rdb.HSet(ctx, key, "value", text, "note", text, "reason", text, "by", text, "label", text)
		} else if wholly {
			rdb.Set(ctx, key, text, time.Minute)
		}
	}
}

// TestForeignTextInLogs: whatever a task has, and whatever another program has written to the keys of guards, lines of
// the log and errors are short, and show each character. So are the errors that hooks get.
func TestForeignTextInLogs(t *testing.T) {
	t.Parallel()
	for what, text := range testkit.ForeignTexts {
		for handler, newHandler := range testkit.LogHandlers {
			t.Run(what+", "+handler, func(t *testing.T) {
				t.Parallel()
				var logged bytes.Buffer
				logger := slog.New(newHandler(&logged))
				failure := errors.New(text) // which a guard returns as it is
				show := func(err error) {
					if err != nil && !errors.Is(err, failure) {
						testkit.WantVisible(t, err.Error(), mostText)
					}
				}
				d := newDesk(t, core.WithLogger(logger), core.WithHooks(core.Hooks{
					NotRun:   func(_ context.Context, not core.NotRun) { show(not.Err) },
					Incident: func(_ context.Context, i core.Incident) { show(i.Err) },
					RunEnd:   func(_ context.Context, end core.RunEnd) { show(end.Err) },
				}))
				failing := func(context.Context, *asynq.Task) error { return failure }
				held := func(ctx context.Context, _ *asynq.Task) error { return core.Hold(ctx, text) }
				for _, key := range []asynqlock.KeyFunc{
					asynqlock.ByPayload("/order"), asynqlock.ByHeader("K"), asynqlock.ByType(), asynqlock.ByTaskID(),
					func(context.Context, *asynq.Task) (string, error) { return text, nil },
				} {
					guards := []asynq.MiddlewareFunc{
						asynqlock.Exclusive(d.locks.Mutex, key), asynqlock.Exclusive(d.locks.Mutex, key, asynqlock.WithLine(d.rdb)), asynqlock.Once(d.locks, key),
						asynqlock.Once(d.locks, key, asynqlock.ComparePayload(true)),
					}
					handlers := []asynq.HandlerFunc{failing, nothing, held}
					for _, foreign := range []func(){
						func() {},
						func() { overwriteAll(t.Context(), t, d.rdb, text, false) },
						func() { overwriteAll(t.Context(), t, d.rdb, text, true) },
					} {
						foreign()
						for _, guard := range guards {
							for info, task := range foreignTasks(text) {
								for _, handle := range handlers {
									show(guard(handle).ProcessTask(asynqlock.ContextWithTask(t.Context(), info), task))
								}
							}
						}
						handlers = []asynq.HandlerFunc{nothing} // by now there are records
					}
					d.rdb.FlushAll(t.Context())
				}
				testkit.WantVisibleLines(t, logged.String(), mostLine)
			})
		}
	}
}
