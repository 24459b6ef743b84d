package core_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestHooksSeeRefusals: what AcquireEnd tells of calls that came to nothing.
func TestHooksSeeRefusals(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	var start core.AcquireStart
	var end core.AcquireEnd
	locks := newClient(t, rdb, core.WithTTL(long), core.WithHooks(core.Hooks{
		AcquireStart: func(ctx context.Context, s core.AcquireStart) context.Context { start = s; return ctx },
		AcquireEnd:   func(_ context.Context, e core.AcquireEnd) { end = e },
	}))
	lease := mustLock(t, locks.Mutex("name"), core.WithMaxHold(10*time.Second))
	if start.Try || end.Err != nil {
		t.Errorf("%+v, %+v", start, end)
	}
	if left := time.Until(lease.ValidUntil()); left > 10*time.Second {
		t.Errorf("valid for %v, longer than it may be held", left)
	}
	_, _ = locks.Mutex("name").TryLock(context.Background())
	if wantErr(t, end.Err, core.ErrNotAcquired); !start.Try || end.Token != 0 {
		t.Errorf("%+v, %+v", start, end)
	}
	dead, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := locks.Mutex("name").Lock(dead); err == nil || end.Asked != 0 {
		t.Errorf("a dead context: %v after %d requests", err, end.Asked)
	}
	_, err := locks.Mutex("name", core.WithTTL(366*24*time.Hour)).TryLock(context.Background())
	wantErr(t, err, core.ErrInvalidOption)
	unlock(t, lease)
	_ = rdb.Close()
	if _, err := locks.Mutex("name").Lock(context.Background()); !errors.Is(err, redis.ErrClosed) || end.Asked != 1 {
		t.Errorf("a closed connection: %v after %d requests", err, end.Asked)
	}
}
