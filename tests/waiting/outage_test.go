package waiting_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
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
			locks := coretest.NewClient(t, relay.Client(edit), asked, core.WithLogger(nil))
			holder := coretest.NewClient(t, server.Client(), core.WithTTL(coretest.Long))
			var all sync.WaitGroup
			var outages atomic.Int64
			for i := range names {
				key := fmt.Sprint("name", i)
				coretest.MustLock(t, holder.Mutex(key))
				coretest.MustBegin(t, holder.Once(key))
				for kind, wait := range map[string]func(ctx context.Context) error{
					"Mutex": func(ctx context.Context) error { _, err := locks.Mutex(key).Lock(ctx); return err },
					"Once": func(ctx context.Context) error {
						_, err := locks.Once(key, core.WithWait(coretest.Long)).Begin(ctx)
						return err
					},
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

// TestSilentRedisIsRetriedOnce: each request to it waits for seconds. However long a call may wait, two of them are enough.
func TestSilentRedisIsRetriedOnce(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := coretest.NewClient(t, server.Client(func(o *redis.Options) { o.ReadTimeout = -1 }), core.WithLogger(nil), core.WithWait(coretest.Long),
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
			_, err := locks.Once("later", core.WithWait(coretest.Long)).Begin(ctx)
			return err
		},
	} {
		all.Go(func() {
			var asked int
			err := call(context.WithValue(context.Background(), askedKey{}, &asked))
			coretest.WantErr(t, err, core.ErrUnavailable)
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

// TestDeadlineNamesTheHolder: whether WithWait or the caller's context bounds a wait, the error names who holds the lock, of
// which process it is, and for how long. It is the context's error too.
func TestDeadlineNamesTheHolder(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	ours := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithInstance("web-1:7"))
	for kind, strategy := range coretest.Exclusives(ours) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			lease := coretest.MustLock(t, strategy(kind))
			theirs := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithInstance("web-2:8"))
			strategy := coretest.Exclusives(theirs)[kind]
			coretest.AwaitInstance(t, func() error { _, err := strategy(kind).TryLock(t.Context()); return err })
			const wait = 50 * time.Millisecond
			for range 2 { // alone, and behind another waiter of this process
				short, cancel := context.WithTimeout(t.Context(), wait)
				_, ended := strategy(kind).Lock(short)
				cancel()
				cancelled, stop := context.WithCancelCause(t.Context())
				time.AfterFunc(wait, func() { stop(errors.New("the shop has closed")) })
				_, stopped := strategy(kind).Lock(cancelled)
				_, waited := strategy(kind).Lock(t.Context(), core.WithWait(wait))
				for what, err := range map[string]error{"deadline": ended, "cancel": stopped, "WithWait": waited} {
					var busy *core.NotAcquiredError
					if !errors.As(err, &busy) || busy.Holder != lease.Owner() || busy.Instance != "web-1:7" || busy.RetryAfter <= 0 ||
						!strings.Contains(err.Error(), "held by another owner of web-1:7, whose lease ends in") {
						t.Errorf("%s: %v (%+v)", what, err, busy)
					}
				}
				if !errors.Is(ended, context.DeadlineExceeded) || !strings.Contains(ended.Error(), "deadline exceeded") {
					t.Errorf("deadline: %v", ended)
				}
				if !errors.Is(stopped, context.Canceled) || !strings.Contains(stopped.Error(), "the shop has closed") {
					t.Errorf("cancel: %v", stopped)
				}
				go func() { _, _ = strategy(kind).Lock(context.Background()) }() // until the client is closed
				testkit.Eventually(t, coretest.Within, "the other waiter", func() bool { return len(theirs.Waiting()) > 0 })
			}
		})
	}
	t.Run("Once", func(t *testing.T) {
		t.Parallel()
		coretest.MustBegin(t, ours.Once("once"))
		short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := ours.Once("once", core.WithWait(coretest.Long)).Begin(short)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "with a lease of") || !strings.Contains(err.Error(), "web-1:7") {
			t.Error(err)
		}
	})
}
