package httpconformance

import (
	"context"
	"errors"
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

// watch gets what the guards of a client tell its hooks, and has room enough not to block.
type watch struct {
	acquired chan core.RunStart // not of unguarded runs
	replayed chan core.NotRun
	finished chan core.RunEnd
	refused  chan *httplock.Conflict
	failed   chan core.Incident
}

func newWatch() *watch {
	return &watch{
		acquired: make(chan core.RunStart, 2000), replayed: make(chan core.NotRun, 2000),
		finished: make(chan core.RunEnd, 2000), refused: make(chan *httplock.Conflict, 2000),
		failed: make(chan core.Incident, 2000),
	}
}

// hooks makes a client send what it is told.
func (w *watch) hooks() core.Option {
	return core.WithHooks(core.Hooks{
		RunStart: func(ctx context.Context, start core.RunStart) context.Context {
			if start.Token != 0 {
				w.acquired <- start
			}
			return ctx
		},
		NotRun: func(_ context.Context, not core.NotRun) {
			var conflict *httplock.Conflict
			if errors.As(not.Err, &conflict) {
				w.refused <- conflict
			} else {
				w.replayed <- not
			}
		},
		RunEnd:   func(_ context.Context, end core.RunEnd) { w.finished <- end },
		Incident: func(_ context.Context, incident core.Incident) { w.failed <- incident },
	})
}

// told is the suite with a client of its own, whose hooks are w's.
func (s *suite) told(t testing.TB, w *watch) *suite {
	t.Helper()
	told := *s
	told.locks = newLocks(t, s.redis.Client(), w.hooks())
	return &told
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
	r, err := ledger(t, locks, opts...).PeekKey(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return r
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
