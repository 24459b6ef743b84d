package nethttp_test

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/httpkit"
)

func TestMain(m *testing.M) {
	testkit.VerifyWaitingMain(m)
}

// newLocks returns a client of its own, as every instance of a service has one.
func newLocks(t testing.TB, rdb redis.UniversalClient, opts ...core.Option) *core.Client {
	t.Helper()
	locks, err := core.New(rdb, append([]core.Option{core.WithLogger(nil)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() }) // fails where the test has killed Redis
	return locks
}

// cart is the key in most tests: two values, so that the key has to be joined.
func cart() httplock.KeyFunc {
	return httplock.Keys(httplock.ByHeader("X-User"), httplock.ByQuery("cart"))
}

// watch gets what the guards of a client tell its hooks, and has room enough not to block.
type watch struct {
	acquired chan string // key hashes
	refused  chan *httplock.Conflict
	failed   chan error
}

func newWatch() *watch {
	return &watch{
		acquired: make(chan string, 1000),
		refused:  make(chan *httplock.Conflict, 1000),
		failed:   make(chan error, 1000),
	}
}

// hooks makes a client send what it is told.
func (w *watch) hooks() core.Option {
	return core.WithHooks(core.Hooks{
		RunStart: func(ctx context.Context, start core.RunStart) context.Context {
			if start.Token != 0 {
				w.acquired <- start.KeyHash
			}
			return ctx
		},
		NotRun: func(_ context.Context, not core.NotRun) {
			var conflict *httplock.Conflict
			if errors.As(not.Err, &conflict) {
				w.refused <- conflict
			}
		},
		Incident: func(_ context.Context, incident core.Incident) { w.failed <- incident.Err },
	})
}

// awaitWaiter returns when somebody waits for the lock of that key.
func awaitWaiter(t testing.TB, locks *core.Client, hash string) {
	t.Helper()
	testkit.Eventually(t, httpkit.Patience, "a waiter", func() bool {
		info, err := locks.Inspect(t.Context(), "http:"+hash)
		return err == nil && info.Waiters > 0
	})
}

func awaitFree(t testing.TB, locks *core.Client, hash string) {
	t.Helper()
	testkit.Eventually(t, httpkit.Patience, "the release", func() bool {
		info, err := locks.Inspect(t.Context(), "http:"+hash)
		return err == nil && len(info.Holders) == 0
	})
}

// The options of guards in tests that are not about time: a busy machine is no reason to refuse a request.
var (
	patient   = core.WithWait(httpkit.Patience)
	unhurried = httplock.WithAskTimeout(httpkit.Patience)
)
