package gocronlock_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/gocronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// Bounds of one text, and of a line of the log, which may have several.
const (
	mostText = 1500
	mostLine = 3000
)

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

// TestForeignTextInLogs: whatever name a job has, whatever another program has written to its lock, and whatever a
// server replies, lines of the log and errors are short, and show each character. So are the errors that hooks get.
func TestForeignTextInLogs(t *testing.T) {
	t.Parallel()
	for what, text := range testkit.ForeignTexts {
		for handler, newHandler := range testkit.LogHandlers {
			t.Run(what+", "+handler, func(t *testing.T) {
				t.Parallel()
				var logged testkit.Log
				var skipped sync.Map
				show := func(err error) {
					if err != nil {
						testkit.WantVisible(t, err.Error(), mostText)
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
				rdb.HSet(t.Context(), "lock:gocron:job", text, 1, "mode", "60000 5")
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
				testkit.WantVisibleLines(t, logged.String(), mostLine)
				for _, reason := range []string{"refused", "overlapping"} {
					if _, ok := skipped.Load(reason); !ok {
						t.Errorf("no run was %s", reason)
					}
				}
			})
		}
	}
}
