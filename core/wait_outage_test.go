package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestHeldLockIsNoOutage: waits end while a request is under way, whatever bounds go-redis puts on it. A healthy server is
// not told as an outage. Waits that have taken long, or had no time for a second request, are left out; and a few may have
// had no answer at all: the machine is busy.
func TestHeldLockIsNoOutage(t *testing.T) {
	t.Parallel()
	const patience, names, waits = 100 * time.Millisecond, 8, 20
	for name, edit := range map[string]func(*redis.Options){
		"Defaults":       func(*redis.Options) {},
		"ContextTimeout": func(o *redis.Options) { o.ContextTimeoutEnabled = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testkit.Start(t)
			relay := server.Relay()
			relay.Delay(testkit.Both, 3*time.Millisecond)
			asked := core.WithHooks(core.Hooks{
				AcquireEnd: func(ctx context.Context, end core.AcquireEnd) { *ctx.Value(askedKey{}).(*int) = end.Asked },
				BeginEnd:   func(ctx context.Context, end core.BeginEnd) { *ctx.Value(askedKey{}).(*int) = end.Asked },
			})
			locks := newClient(t, relay.Client(edit), asked, core.WithLogger(nil))
			holder := newClient(t, server.Client(), core.WithTTL(long))
			var all sync.WaitGroup
			var outages atomic.Int64
			for i := range names {
				key := fmt.Sprint("name", i)
				mustLock(t, holder.Mutex(key))
				mustBegin(t, holder.Once(key))
				for kind, wait := range map[string]func(ctx context.Context) error{
					"Mutex": func(ctx context.Context) error { _, err := locks.Mutex(key).Lock(ctx); return err },
					"Once":  func(ctx context.Context) error { _, err := locks.Once(key, core.WithWait(long)).Begin(ctx); return err },
				} {
					all.Go(func() {
						for range waits {
							var asked int
							ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), askedKey{}, &asked), patience)
							began := time.Now()
							err := wait(ctx)
							cancel()
							if errors.Is(err, core.ErrUnavailable) && asked > 1 && time.Since(began) < 2*patience {
								t.Logf("%s: %v after %d requests", kind, err, asked)
								outages.Add(1)
							}
						}
					})
				}
			}
			all.Wait()
			if n := outages.Load(); n > names*waits/20 {
				t.Errorf("%d of %d waits ended in an outage", n, 2*names*waits)
			}
		})
	}
}

type askedKey struct{}
