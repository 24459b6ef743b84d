package cronlock_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// TestRedisIsDown: a tick that cannot be claimed in time is skipped, and told; or it runs if the job says so.
func TestRedisIsDown(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		opts    []cronlock.Option
		runs    int
		reasons []cronlock.Reason
	}{
		{"fail closed", nil, 0, []cronlock.Reason{cronlock.Unavailable}},
		{"fail open", []cronlock.Option{cronlock.FailOpen()}, 1, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			r := newReplica(t, newClient(t, server.Client()), idle,
				append(test.opts, cronlock.WithStartDeadline(100*time.Millisecond))...)
			server.Kill()
			r.fire(time.Now())
			r.expect(t, test.runs, test.reasons...)
		})
	}
}

// TestRedisComesBack: a tick that was due while Redis was away runs, once, as long as it is in time.
func TestRedisComesBack(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	failed := make(chan struct{}, 1000)
	hooks := core.WithHooks(core.Hooks{BeginEnd: func(context.Context, core.BeginEnd) { failed <- struct{}{} }})
	a := newReplica(t, newClient(t, server.Client(), hooks), idle)
	b := newReplica(t, newClient(t, server.Client(), hooks), idle)
	server.Kill()
	tick := time.Now().Truncate(time.Second)
	first, second := a.start(tick), b.start(tick)
	for range 4 {
		receive(t, failed, "a question without an answer")
	}
	server.Restart()
	first()
	second()
	if runs := len(a.runs()) + len(b.runs()); runs != 1 {
		t.Errorf("%d runs, want 1", runs)
	}
}

// TestLostClaim: a claim whose reply never comes is no run, for whoever sent it. It asks again, although Redis says that
// somebody has the tick.
func TestLostClaim(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	relay := server.Relay()
	impatient := func(o *redis.Options) {
		o.ReadTimeout, o.ContextTimeoutEnabled, o.MaxRetries = 50*time.Millisecond, true, -1
	}
	begun := make(chan core.BeginEnd, 1000)
	hooks := core.WithHooks(core.Hooks{
		BeginEnd: func(_ context.Context, end core.BeginEnd) { begun <- end },
	})
	r := newReplica(t, newClient(t, relay.Client(impatient), hooks), idle)
	other := newReplica(t, newClient(t, server.Client()), idle)
	tick := time.Now().Truncate(time.Second)

	relay.Drop(redistest.ToClient)
	wait := r.start(tick)
	for end := range begun {
		if end.Err == nil {
			t.Fatal("it was answered")
		}
		break
	}
	server.Pause() // what is sent from here on arrives all at once
	relay.Heal()
	for range 2 {
		receive(t, begun, "another question without an answer")
	}
	server.Resume()
	wait()
	other.fire(tick)
	r.expect(t, 1)
	other.expect(t, 0, cronlock.Taken)
}

// TestShutdownInOutage: who is stopped while Redis is away runs nothing, whatever the job says about outages.
func TestShutdownInOutage(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	ctx, stop := context.WithCancel(t.Context())
	failed := make(chan struct{}, 1000)
	hooks := core.WithHooks(core.Hooks{BeginEnd: func(context.Context, core.BeginEnd) { failed <- struct{}{} }})
	r := newReplica(t, newClient(t, server.Client(), hooks), idle, cronlock.FailOpen(), cronlock.WithContext(ctx))
	server.Kill()
	wait := r.start(time.Now())
	receive(t, failed, "a question without an answer")
	stop()
	wait()
	r.expect(t, 0, cronlock.Stopped)
}

// TestClosedClient: nothing runs any more, and nothing waits.
func TestClosedClient(t *testing.T) {
	t.Parallel()
	r := newReplica(t, newClient(t, redistest.Start(t).Client()), idle, cronlock.FailOpen(), cronlock.WithCatchUp(time.Hour))
	if err := r.locks.Close(); err != nil {
		t.Fatal(err)
	}
	r.fire(time.Now().Truncate(time.Second))
	r.expect(t, 0, cronlock.Stopped)
}

// TestRefused: an error of Redis that time does not cure is told at once, and is no outage.
func TestRefused(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client()
	locks := newClient(t, rdb)
	r := newReplica(t, locks, idle, cronlock.FailOpen())
	tick := time.Now().Truncate(time.Second)
	r.fire(tick)
	records := rdb.Keys(t.Context(), "*once=*:at:*").Val()
	records = slices.DeleteFunc(records, func(key string) bool { return rdb.Type(t.Context(), key).Val() != "hash" })
	if len(records) != 1 {
		t.Fatalf("records %q", records)
	}
	rdb.Set(t.Context(), records[0], "of somebody else", 0)
	r.fire(tick)
	r.expect(t, 1, cronlock.Refused)
}
