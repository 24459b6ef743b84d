package once_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// onceCrowd is many callers of one process that wait for a run of another one, far from Redis.
type onceCrowd struct {
	server  *testkit.Server
	running *core.Attempt
	waits   atomic.Int64
	locks   *core.Client
	all     sync.WaitGroup
}

func newOnceCrowd(t *testing.T) *onceCrowd {
	c := &onceCrowd{server: testkit.Start(t)}
	relay := c.server.Relay()
	relay.Delay(testkit.Both, 5*time.Millisecond)
	c.locks = coretest.NewClient(t, relay.Client(), core.WithTTL(coretest.Long), core.WithHooks(core.Hooks{
		Wait: func(context.Context, core.Wait) { c.waits.Add(1) },
	}))
	coretest.LoadOnce(t, c.server.Client())
	c.running = coretest.MustBegin(t, coretest.NewClient(t, c.server.Client(), core.WithTTL(coretest.Long)).Once("name",
		core.WithFingerprint([]byte("asked"))))
	return c
}

// wait lets n callers wait, each with options of its own, and returns when all do.
func (c *onceCrowd) wait(t *testing.T, n int, opts func(i int) []core.OnceOption, got func(i int, r core.Result, err error)) {
	t.Helper()
	before := c.waits.Load()
	for i := range n {
		c.all.Go(func() {
			options := append(opts(i), core.WithWait(coretest.Within))
			r, err := c.locks.Once("name", options...).Do(context.Background(), coretest.Answers(new(atomic.Int64), "again"))
			got(i, r, err)
		})
	}
	testkit.Eventually(t, coretest.Within, "all to wait", func() bool { return c.waits.Load() == before+int64(n) })
}

// sent ends the run and returns how many scripts that took, until all waiters have their answer.
func (c *onceCrowd) sent(t *testing.T, end func() error) int64 {
	t.Helper()
	before := c.server.CommandStats()["evalsha"].Calls
	if err := end(); err != nil {
		t.Error(err)
	}
	c.all.Wait()
	return c.server.CommandStats()["evalsha"].Calls - before
}

// TestAllWaitersLearnAtOnce: an answer that holds for all costs one of them a round trip, not each.
func TestAllWaitersLearnAtOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, test := range map[string]struct {
		end  func(*core.Attempt) error
		want error
	}{
		"completed": {func(a *core.Attempt) error { return a.Complete(ctx, []byte("value")) }, nil},
		"held":      {func(a *core.Attempt) error { return a.Hold(ctx, "reason") }, core.ErrOutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const waiters = 500
			c := newOnceCrowd(t)
			asked := func(int) []core.OnceOption { return []core.OnceOption{core.WithFingerprint([]byte("asked"))} }
			c.wait(t, waiters, asked, func(i int, r core.Result, err error) {
				if !errors.Is(err, test.want) || test.want == nil && (!r.Replayed || string(r.Value) != "value") {
					t.Errorf("waiter %d: %+v, %v", i, r, err)
					return
				}
				for i := range r.Value { // it is the caller's own
					r.Value[i]++
				}
				var unknown *core.OutcomeUnknownError
				if errors.As(err, &unknown) {
					unknown.Record.Fingerprint[0]++
				}
			})
			if n := c.sent(t, func() error { return test.end(c.running) }); n > waiters/20 {
				t.Errorf("%d scripts for %d waiters", n, waiters)
			}
		})
	}
}

// TestWaitersWithDifferentOptions ask for themselves: the answer of another one is not theirs. They do so at the same time.
func TestWaitersWithDifferentOptions(t *testing.T) {
	t.Parallel()
	const each = 40
	c := newOnceCrowd(t)
	var mismatches, replays atomic.Int64
	count := func(i int, r core.Result, err error) {
		switch {
		case errors.Is(err, core.ErrFingerprintMismatch):
			mismatches.Add(1)
		case err == nil && string(r.Value) == "value":
			replays.Add(1)
		default:
			t.Errorf("waiter %d: %+v, %v", i, r, err)
		}
	}
	c.wait(t, each, func(int) []core.OnceOption { return nil }, count)
	c.wait(t, each, func(i int) []core.OnceOption {
		return []core.OnceOption{core.WithFingerprint(fmt.Append(nil, "other ", i))}
	}, count)
	c.wait(t, each, func(int) []core.OnceOption {
		return []core.OnceOption{core.WithFailurePolicy(core.HoldFailures)}
	}, count)
	n := c.sent(t, func() error { return c.running.Complete(context.Background(), []byte("value")) })
	if mismatches.Load() != each || replays.Load() != 2*each {
		t.Errorf("%d mismatches, %d replays", mismatches.Load(), replays.Load())
	}
	if n > 2*each+each/2 {
		t.Errorf("%d scripts for %d waiters", n, 3*each)
	}
}

// TestWaitersFollowARelease: what holds for one only is told to one only, however many wait.
func TestWaitersFollowARelease(t *testing.T) {
	t.Parallel()
	const waiters = 20
	c := newOnceCrowd(t)
	var ran, replayed atomic.Int64
	c.wait(t, waiters, func(i int) []core.OnceOption {
		return []core.OnceOption{core.WithFailurePolicy(core.FailurePolicy(i % 2))}
	}, func(_ int, r core.Result, err error) {
		switch {
		case err != nil:
			t.Error(err)
		case r.Replayed:
			replayed.Add(1)
		default:
			ran.Add(1)
		}
	})
	c.sent(t, func() error { return c.running.Release(context.Background()) })
	if ran.Load() != 1 || replayed.Load() != waiters-1 {
		t.Errorf("%d ran, %d have its value", ran.Load(), replayed.Load())
	}
}
