package cronlock_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// foreignTexts are what the name of a job may have, and what another program may write to Redis.
var foreignTexts = map[string]string{
	"escape": "\x1b[2J", "C1": "\u009b31m", "bidi": "\u202egnp.exe", "line": "a\nlevel=INFO msg=forged", "NUL": "\x00", "broken": "\xff\xfe",
	"long": strings.Repeat("\x1b\u202e", testkit.Rounds(1<<12, 1<<18)),
}

// Bounds of one text, and of a line of the log, which may have several.
const (
	mostText = 1024
	mostLine = 2048
)

// wantVisible fails the test for a longer text, or one with what people cannot see.
func wantVisible(t *testing.T, text string, most int) {
	t.Helper()
	if len(text) > most {
		t.Errorf("%d bytes: %.200q", len(text), text)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) || !utf8.ValidString(text) {
		t.Errorf("not visible: %.200q", text)
	}
}

// logHandlers are those of package slog.
var logHandlers = map[string]func(io.Writer) slog.Handler{
	"text": func(w io.Writer) slog.Handler {
		return slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug})
	},
	"JSON": func(w io.Writer) slog.Handler {
		return slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug})
	},
}

// jobsCalled lets jobs with that name fail, overlap and register on a client, and returns the errors.
func jobsCalled(ctx context.Context, locks *core.Client, tick time.Time, name string, opts ...cronlock.Option) []error {
	c := cron.New()
	_, added := cronlock.AddFunc(c, locks, "0 3 * * *", name, func(context.Context) error { return errors.New("failed: " + name) }, opts...)
	_, again := cronlock.AddFunc(c, locks, "0 3 * * *", name, idle, opts...)
	_, spec := cronlock.AddFunc(cron.New(), locks, name, "job", idle, opts...)
	if added == nil {
		cronlock.Fire(c, name, tick)
		cronlock.Compare(c, name, tick)
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

// TestForeignTextInLogs: whatever name a job has, and whatever another program has written to its records, lines of the log and errors
// are short, and show each character. So are the errors that hooks get.
func TestForeignTextInLogs(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for what, text := range foreignTexts {
		for handler, newHandler := range logHandlers {
			t.Run(what+", "+handler, func(t *testing.T) {
				t.Parallel()
				server := testkit.Start(t)
				rdb := server.Client()
				tick := time.Now().Truncate(time.Second)
				var logged logBuffer
				logger := slog.New(newHandler(&logged))
				show := func(err error) {
					if err != nil && !strings.HasPrefix(err.Error(), "failed: ") { // the error of the job, as it is
						wantVisible(t, err.Error(), mostText)
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
				for line := range strings.Lines(logged.String()) {
					wantVisible(t, strings.TrimSuffix(line, "\n"), mostLine)
				}
				if logged.Len() == 0 {
					t.Error("nothing was logged")
				}
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
