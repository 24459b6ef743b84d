package httpconformance

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// stage is a handler whose runs the test watches and ends.
type stage struct {
	entered chan *http.Request // one for each run
	leave   chan struct{}      // closed to end the runs
	over    <-chan struct{}    // closed at the end of the test, so that a failed one can close its servers
}

func newStage(t testing.TB) *stage {
	return &stage{entered: make(chan *http.Request, 100), leave: make(chan struct{}), over: t.Context().Done()}
}

func (s *stage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.entered <- r
	select {
	case <-s.leave:
	case <-s.over:
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write([]byte("done"))
}

// await returns when the channel is closed, or at the end of the test: a handler that waited on would keep a failed test
// from closing its servers.
func await(t testing.TB, leave <-chan struct{}) {
	select {
	case <-leave:
	case <-t.Context().Done():
	}
}

// counter is a handler that answers 201 with how often it has run.
type counter struct{ runs atomic.Int64 }

func (c *counter) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	n := c.runs.Add(1)
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write([]byte(strconv.FormatInt(n, 10)))
}

// ran checks how often a counter has run.
func (c *counter) ran(t testing.TB, want int64) {
	t.Helper()
	if got := c.runs.Load(); got != want {
		t.Errorf("the handler ran %d times, want %d", got, want)
	}
}

// receive waits for a signal.
func receive[T any](t testing.TB, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("waited %v for %s", patience, what)
		panic("unreachable")
	}
}

// watch makes hooks that send what they are told, with room enough not to block.
type watch struct {
	acquired chan httplock.Acquired
	replayed chan httplock.Replayed
	finished chan httplock.Finished
	refused  chan *httplock.Conflict
	failed   chan httplock.Failure
}

func newWatch() *watch {
	return &watch{
		acquired: make(chan httplock.Acquired, 2000), replayed: make(chan httplock.Replayed, 2000),
		finished: make(chan httplock.Finished, 2000), refused: make(chan *httplock.Conflict, 2000),
		failed: make(chan httplock.Failure, 2000),
	}
}

func (w *watch) option() httplock.Option {
	return httplock.WithHooks(httplock.Hooks{
		Acquired: func(_ context.Context, a httplock.Acquired) { w.acquired <- a },
		Replayed: func(_ context.Context, r httplock.Replayed) { w.replayed <- r },
		Finished: func(_ context.Context, f httplock.Finished) { w.finished <- f },
		Refused:  func(_ context.Context, c *httplock.Conflict) { w.refused <- c },
		Failed:   func(_ context.Context, f httplock.Failure) { w.failed <- f },
	})
}

// idempotentKey is the key that ByUser and an Idempotency-Key make.
func idempotentKey(t testing.TB, user, value string) httplock.Key {
	t.Helper()
	part, err := httplock.IdempotencyKey(value)
	if err != nil {
		t.Fatal(err)
	}
	key, err := httplock.Join(userKey(t, user), part)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// userKey is the key that ByUser makes.
func userKey(t testing.TB, user string) httplock.Key {
	t.Helper()
	key, err := httplock.NewKey("header:X-User", user)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// ledger reads the records of all guards that have these options, whatever the parts of their keys.
func ledger(t testing.TB, locks *core.Client, opts ...httplock.Option) *httplock.Guard {
	t.Helper()
	guard, err := httplock.NewOnce(locks, httplock.Constant("any"), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

// record returns the record of a key.
func record(t testing.TB, locks *core.Client, key httplock.Key, opts ...httplock.Option) core.Record {
	t.Helper()
	r, err := ledger(t, locks, opts...).Peek(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return r.Record
}

// forget deletes the record of a key, also while a request runs.
func forget(t testing.TB, locks *core.Client, key httplock.Key, opts ...httplock.Option) {
	t.Helper()
	seen := record(t, locks, key, opts...)
	if err := locks.Once(seen.Key).ForgetRunning(t.Context(), seen); err != nil {
		t.Fatal(err)
	}
}

// awaitState returns when the record of a key has that state.
func awaitState(t testing.TB, locks *core.Client, key httplock.Key, want core.State) {
	t.Helper()
	testkit.Eventually(t, patience, "the record to be "+strconv.Quote(string(want)), func() bool {
		return record(t, locks, key).State == want
	})
}
