package gocronlock_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/gocronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// foreignTexts are what the name of a job may have, what another program may write to Redis, and what a server may reply.
var foreignTexts = map[string]string{
	"escape": "\x1b[2J", "C1": "\u009b31m", "bidi": "\u202egnp.exe", "line": "a\nlevel=INFO msg=forged", "NUL": "\x00", "broken": "\xff\xfe",
	"long": strings.Repeat("\x1b\u202e", testkit.Rounds(1<<12, 1<<20)),
}

// Bounds of one text, and of a line of the log, which may have several.
const (
	mostText = 1500
	mostLine = 3000
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

// syncBuffer is a log that several goroutines write.
type syncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
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

// lockTwice takes the lock of a job for two jobs with that name, lets the lease be lost, and releases it. It returns the errors.
func lockTwice(ctx context.Context, rdb *redis.Client, locker *gocronlock.JobLocker, job string) (errs []error) {
	for range 2 {
		ctx, removed := context.WithCancel(ctx)
		defer removed()
		lock, err := locker.Lock(ctx, job)
		if errs = append(errs, err); err == nil {
			rdb.FlushAll(ctx)
			errs = append(errs, lock.Unlock(ctx))
		}
	}
	return errs
}

// TestForeignTextInLogs: whatever name a job has, whatever another program has written to its lock, and whatever a server replies, lines of
// the log and errors are short, and show each character. So are the errors that hooks get.
func TestForeignTextInLogs(t *testing.T) {
	t.Parallel()
	for what, text := range foreignTexts {
		for handler, newHandler := range logHandlers {
			t.Run(what+", "+handler, func(t *testing.T) {
				t.Parallel()
				var logged syncBuffer
				var skipped sync.Map
				show := func(err error) {
					if err != nil {
						wantVisible(t, err.Error(), mostText)
					}
				}
				options := []core.Option{core.WithLogger(slog.New(newHandler(&logged))), core.WithTTL(time.Minute), core.WithHooks(core.Hooks{
					NotRun:   func(_ context.Context, not core.NotRun) { show(not.Err); skipped.Store(not.Reason, true) },
					Incident: func(_ context.Context, i core.Incident) { show(i.Err) },
					RunEnd:   func(_ context.Context, end core.RunEnd) { show(end.Err) },
				})}
				rdb := testkit.Start(t).Client()
				locks := newClient(t, rdb, options...)
				locker := gocronlock.Locker(locks.Mutex)
				for _, job := range []string{text, text + ".func1", "job"} {
					for _, err := range lockTwice(t.Context(), rdb, locker, job) {
						show(err)
					}
				}
				// another program holds the lock, and then has other data at its key
				rdb.HSet(t.Context(), "lock:gocron:job", text, 1, "mode", "60000", "token", 5)
				for _, err := range lockTwice(t.Context(), rdb, locker, "job") {
					show(err)
				}
				rdb.HSet(t.Context(), "lock:gocron:job", "mode", text, text, text)
				for _, err := range lockTwice(t.Context(), rdb, locker, "job") {
					show(err)
				}
				rdb.AddHook(coretest.Answering{Answer: func(string) (any, error) { return nil, coretest.ErrorReply("ERR " + text) }})
				for _, err := range lockTwice(t.Context(), rdb, locker, "job") {
					show(err)
				}
				elector, err := gocronlock.NewElector(locks.Election(text))
				if show(err); err == nil {
					show(elector.IsLeader(t.Context()))
					ctx, cancel := context.WithCancelCause(t.Context())
					cancel(errors.New(text))
					show(elector.Lead(ctx))
				}
				for line := range strings.Lines(logged.String()) {
					wantVisible(t, strings.TrimSuffix(line, "\n"), mostLine)
				}
				for _, reason := range []string{"refused", "overlapping"} {
					if _, ok := skipped.Load(reason); !ok {
						t.Errorf("no run was %s", reason)
					}
				}
			})
		}
	}
}
