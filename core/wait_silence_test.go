package core_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestSilentRedisIsAskedTwice: each request to it waits for seconds. However long a call may wait, two of them are enough.
func TestSilentRedisIsAskedTwice(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := newClient(t, server.Client(func(o *redis.Options) { o.ReadTimeout = -1 }), core.WithLogger(nil), core.WithWait(long),
		core.WithHooks(core.Hooks{
			AcquireEnd: func(ctx context.Context, end core.AcquireEnd) { *ctx.Value(askedKey{}).(*int) = end.Asked },
			BeginEnd:   func(ctx context.Context, end core.BeginEnd) { *ctx.Value(askedKey{}).(*int) = end.Asked },
		}))
	server.Pause()
	defer server.Resume()
	var all sync.WaitGroup
	for name, call := range map[string]func(ctx context.Context) error{
		"Lock":    func(ctx context.Context) error { _, err := locks.Mutex("lock").Lock(ctx); return err },
		"TryLock": func(ctx context.Context) error { _, err := locks.Mutex("try").TryLock(ctx); return err },
		"Fair":    func(ctx context.Context) error { _, err := locks.Fair("fair").Lock(ctx); return err },
		"Once":    func(ctx context.Context) error { _, err := locks.Once("once").Begin(ctx); return err },
		"OnceWaits": func(ctx context.Context) error {
			_, err := locks.Once("later", core.WithWait(long)).Begin(ctx)
			return err
		},
	} {
		all.Go(func() {
			var asked int
			err := call(context.WithValue(context.Background(), askedKey{}, &asked))
			wantErr(t, err, core.ErrUnavailable)
			if asked != 2 {
				t.Errorf("%s gave up after %d requests", name, asked)
			}
			if err != nil && strings.Contains(err.Error(), "wait") {
				t.Errorf("%s speaks of a wait: %v", name, err)
			}
		})
	}
	all.Wait()
}
