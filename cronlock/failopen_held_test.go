package cronlock_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/internal/outage"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestShortWaitIsNoOutage: Redis answers after more than the whole wait that the lock is held. FailOpen opens nothing.
func TestShortWaitIsNoOutage(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	if _, err := newClient(t, server.Client()).Mutex("cron:job").Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	relay := server.Relay()
	relay.Delay(testkit.Both, 20*time.Millisecond)
	locks := newClient(t, relay.Client())
	for {
		var ran atomic.Bool
		began := time.Now()
		skips := runExclusive(locks, func() { ran.Store(true) }, cronlock.WithWait(2*time.Millisecond))
		took := time.Since(began)
		switch {
		case !ran.Load() && slices.Equal(skips, []cronlock.Reason{cronlock.Overlapping}):
			return
		case took < outage.AskTimeout: // a busy machine may take longer
			t.Fatalf("ran %v, skipped for %q, after %v", ran.Load(), skips, took)
		}
	}
}

// TestHeldAndThenSilent: Redis has said that the lock is held, and is silent for the rest of the wait. FailOpen opens
// nothing, because the other run still has the lock.
func TestHeldAndThenSilent(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	if _, err := newClient(t, server.Client()).Mutex("cron:job").Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	relay := server.Relay()
	locks := newClient(t, relay.Client(), core.WithHooks(core.Hooks{
		Wait: func(context.Context, core.Wait) { relay.Hold(testkit.Both) },
	}))
	t.Cleanup(relay.Heal) // so that the client can close soon
	ran := false
	skips := runExclusive(locks, func() { ran = true }, cronlock.WithWait(3*time.Second))
	if ran || !slices.Equal(skips, []cronlock.Reason{cronlock.Overlapping}) {
		t.Errorf("ran %v, skipped for %q", ran, skips)
	}
}

// runExclusive runs a job once behind a guard that fails open, and returns why it was skipped.
func runExclusive(locks *core.Client, fn func(), opts ...cronlock.Option) (skips []cronlock.Reason) {
	hooks := cronlock.Hooks{Skipped: func(skip cronlock.Skip) { skips = append(skips, skip.Reason) }}
	opts = append(opts, cronlock.WithLogger(quiet), cronlock.WithHooks(hooks), cronlock.FailOpen())
	cronlock.Exclusive(locks.Mutex, "job", opts...)(cron.FuncJob(fn)).Run()
	return skips
}

// TestTickHeldAndThenSilent: a claimed tick waits for the run of another one. Redis falls silent until the wait ends, or
// the tick may not start any more. FailOpen opens nothing.
func TestTickHeldAndThenSilent(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]cronlock.Option{
		"wait":     {cronlock.WithWait(3 * time.Second)},
		"deadline": {cronlock.WithWait(time.Minute), cronlock.WithStartDeadline(10 * time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testkit.Start(t)
			if _, err := newClient(t, server.Client()).Mutex("cron:{job}").Lock(t.Context()); err != nil {
				t.Fatal(err)
			}
			relay := server.Relay()
			locks := newClient(t, relay.Client(), core.WithHooks(core.Hooks{
				Wait: func(context.Context, core.Wait) { relay.Hold(testkit.Both) },
			}))
			t.Cleanup(relay.Heal) // so that the client can close soon
			r := newReplica(t, locks, idle, append(opts, cronlock.FailOpen())...)
			r.fire(time.Now().Truncate(time.Second))
			r.expect(t, 0, cronlock.Overlapping)
		})
	}
}
