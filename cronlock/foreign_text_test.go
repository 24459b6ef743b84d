package cronlock_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// Bounds of one text, and of a line of the log, which may have several.
const (
	mostText = 1024
	mostLine = 2048
)

// jobsCalled lets jobs with that name fail, overlap and register on a client, and returns the errors.
func jobsCalled(ctx context.Context, locks *core.Client, tick time.Time, name string, opts ...cronlock.Option) []error {
	c := cron.New()
	_, added := cronlock.AddFunc(c, locks, "0 3 * * *", name, func(context.Context) error { return errors.New("failed: " + name) }, opts...)
	_, again := cronlock.AddFunc(c, locks, "0 3 * * *", name, idle, opts...)
	_, spec := cronlock.AddFunc(cron.New(), locks, name, "job", idle, opts...)
	if added == nil {
		cronlock.Fire(c, name, tick)
		cronlock.Claim(c, name, tick)
		_ = cronlock.Register(ctx, c, name)
	}
	job := cronlock.Job(locks, name)
	_ = job.Run(ctx, c) // the error of the job
	_, paused := job.Paused(ctx)
	_, history := job.History(ctx)
	_, info := job.Info(ctx)
	_, jobs := cronlock.Jobs(ctx, locks)
	return []error{added, again, spec, paused, history, info, jobs, job.Pause(ctx, name), job.Resume(ctx)}
}

// TestForeignTextInLogs: whatever name a job has, and whatever another program has written to its records, lines of the
// log and errors are short, and show each character. So are the errors that hooks get.
func TestForeignTextInLogs(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for what, text := range testkit.ForeignTexts {
		for handler, newHandler := range testkit.LogHandlers {
			t.Run(what+", "+handler, func(t *testing.T) {
				t.Parallel()
				server := testkit.Start(t)
				rdb := server.Client()
				tick := time.Now().Truncate(time.Second)
				var logged logBuffer
				logger := slog.New(newHandler(&logged))
				show := func(err error) {
					if err != nil && !strings.HasPrefix(err.Error(), "failed: ") { // the error of the job, as it is
						testkit.WantVisible(t, err.Error(), mostText)
					}
				}
				locks := newClient(t, rdb, core.WithLogger(logger), core.WithHooks(core.Hooks{
					NotRun:   func(_ context.Context, not core.NotRun) { show(not.Err) },
					Incident: func(_ context.Context, i core.Incident) { show(i.Err) },
					RunEnd:   func(_ context.Context, end core.RunEnd) { show(end.Err) },
				}))
				opts := []cronlock.Option{cronlock.WithService("shop")}
				for _, err := range jobsCalled(ctx, locks, tick, text, opts...) {
					show(err)
				}
				for _, err := range jobsCalled(ctx, locks, tick, "job", opts...) {
					show(err)
				}
				overwriteRecords(ctx, t, rdb, text)
				for _, err := range jobsCalled(ctx, locks, tick, "job", opts...) {
					show(err)
				}
				for _, key := range rdb.Keys(ctx, "*").Val() { // other data in place of each key
					rdb.Set(ctx, key, text, time.Minute)
				}
				for _, err := range jobsCalled(ctx, locks, tick, "job", opts...) {
					show(err)
				}
				testkit.WantVisibleLines(t, logged.String(), mostLine)
			})
		}
	}
}

// overwriteRecords writes a text to all fields of records that another program can fill with one.
func overwriteRecords(ctx context.Context, t *testing.T, rdb *redis.Client, text string) {
	t.Helper()
	keys := rdb.Keys(ctx, "holdfast:once=*").Val()
	for _, key := range keys {
		if err := rdb.HSet(ctx, key, "note", text+"\n"+text+"\n"+text, "reason", text, "by", text, "label", text, "value", text).Err(); err != nil {
			t.Error(err)
		}
	}
	if len(keys) == 0 {
		t.Error("there are no records")
	}
}
