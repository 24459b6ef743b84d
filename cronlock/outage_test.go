package cronlock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestRedisIsDown: a tick that cannot be claimed in time is skipped, and told; or it runs if the job says so.
func TestRedisIsDown(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		opts    []cronlock.Option
		runs    int
		reasons []string
	}{
		{"fail closed", nil, 0, []string{cronlock.Unavailable}},
		{"fail open", []cronlock.Option{cronlock.FailOpen()}, 1, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := testkit.Start(t)
			r := newReplica(t, newClient(t, server.Client()), idle,
				append(test.opts, cronlock.WithStartDeadline(100*time.Millisecond))...)
			server.Kill()
			r.fire(time.Now())
			r.expect(t, test.runs, test.reasons...)
		})
	}
}

// dials has an element for each connection that could not be made.
type dials chan struct{}

// of returns a client of a server whose connections are watched.
func (d dials) of(server *testkit.Server) *redis.Client {
	rdb := server.Client()
	rdb.AddHook(d)
	return rdb
}

func (d dials) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if err != nil {
			select {
			case d <- struct{}{}:
			default:
			}
		}
		return conn, err
	}
}

func (dials) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (dials) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// TestTickAfterAnOutage: a tick that was due while Redis was unreachable runs, once, as long as it is in time.
func TestTickAfterAnOutage(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	failed := make(dials, 1000)
	a := newReplica(t, newClient(t, failed.of(server)), idle)
	b := newReplica(t, newClient(t, failed.of(server)), idle)
	server.Kill()
	tick := time.Now().Truncate(time.Second)
	first, second := a.start(tick), b.start(tick)
	for range 4 {
		receive(t, failed, "a connection that fails")
	}
	server.Restart()
	first()
	second()
	if runs := len(a.runs()) + len(b.runs()); runs != 1 {
		t.Errorf("%d runs, want 1", runs)
	}
}

// TestLostClaim: a claim that was sent but not answered may be in the way of the next one, as if somebody ran the tick.
// Its sender asks again until it is taken back; all others have gone.
func TestLostClaim(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	ctx, tick := t.Context(), time.Now().Truncate(time.Second).Add(10*time.Second)
	key := "cron:{job}:at:" + tick.UTC().Format(time.RFC3339Nano)
	// It stands for the lost claim, which is gone too soon to be seen each time.
	lost := newClient(t, server.Client()).Once(key, core.WithWait(patience))
	frozen, unanswered, seen := false, 0, 0
	freeze := func(ctx context.Context, start core.BeginStart) context.Context {
		if start.Key == key && !frozen {
			frozen = true
			server.Pause()
		}
		return ctx
	}
	hooks := core.WithHooks(core.Hooks{BeginStart: freeze, BeginEnd: func(_ context.Context, end core.BeginEnd) {
		switch {
		case end.Key != key: // the job is registered, on another goroutine
		case errors.Is(end.Err, core.ErrUnavailable):
			unanswered++
			server.Resume()
			if _, err := lost.Begin(ctx); err != nil {
				t.Error(err)
			}
		case errors.Is(end.Err, core.ErrInProgress):
			if seen++; seen == 2 {
				record, err := lost.Peek(ctx)
				if err == nil {
					err = lost.ForgetRunning(ctx, record)
				}
				if err != nil {
					t.Error(err)
				}
			}
		}
	}})
	rdb := server.Client(func(o *redis.Options) { o.ReadTimeout, o.MaxRetries = 500*time.Millisecond, -1 })
	r := newReplica(t, newClient(t, rdb, hooks), idle)
	r.fire(tick)
	r.expect(t, 1)
	if unanswered != 1 || seen != 2 {
		t.Errorf("%d claims without an answer, %d in the way; want 1 and 2", unanswered, seen)
	}
	other := newReplica(t, newClient(t, server.Client()), idle)
	other.fire(tick)
	other.expect(t, 0, cronlock.Taken)
}

// TestShutdownInOutage: who is stopped while Redis is unreachable runs nothing, whatever the job says about outages.
func TestShutdownInOutage(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	ctx, stop := context.WithCancel(t.Context())
	failed := make(dials, 1000)
	r := newReplica(t, newClient(t, failed.of(server)), idle, cronlock.FailOpen(), cronlock.WithContext(ctx))
	server.Kill()
	wait := r.start(time.Now())
	receive(t, failed, "a connection that fails")
	stop()
	wait()
	r.expect(t, 0, cronlock.Stopped)
}

// TestClosedClient: nothing runs any more, and nothing waits.
func TestClosedClient(t *testing.T) {
	t.Parallel()
	r := newReplica(t, newClient(t, testkit.Start(t).Client()), idle, cronlock.FailOpen(), cronlock.WithCatchUp(time.Hour))
	if err := r.locks.Close(); err != nil {
		t.Fatal(err)
	}
	r.fire(time.Now().Truncate(time.Second))
	r.expect(t, 0, cronlock.Stopped)
}

// TestRefused: an error of Redis that time does not cure is told at once, and is no outage.
func TestRefused(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
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

// TestSlowAnswerIsNoOutage: the lock is held, and Redis takes more than a second to say so: it stalls, or each reply to a
// new connection is late. FailOpen opens nothing, however short or long the wait is.
func TestSlowAnswerIsNoOutage(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{time.Millisecond, time.Second, 2 * time.Second} {
		for name, slow := range map[string]func(*testkit.Relay){
			"stall": func(relay *testkit.Relay) {
				relay.Hold(testkit.ToClient)
				time.AfterFunc(2500*time.Millisecond, relay.Heal)
			},
			"late": func(relay *testkit.Relay) { relay.Delay(testkit.ToClient, 400*time.Millisecond) },
		} {
			t.Run(fmt.Sprint(name, wait), func(t *testing.T) {
				t.Parallel()
				expectOverlap(t, wait, slow)
			})
		}
	}
}

// expectOverlap runs a job that waits, while another run has its lock.
func expectOverlap(t *testing.T, wait time.Duration, slow func(*testkit.Relay)) {
	server := testkit.Start(t)
	if _, err := newClient(t, server.Client()).Mutex("cron:job").Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	for {
		relay := server.Relay()
		locks := newClient(t, relay.Client())
		slow(relay)
		ran, began := false, time.Now()
		skips := runExclusive(locks, func() { ran = true }, core.WithWait(wait))
		took := time.Since(began)
		relay.Heal()
		switch {
		case !ran && slices.Equal(skips, []string{cronlock.Overlapping}):
			return
		case took < 5*time.Second: // a busy machine may take longer
			t.Fatalf("ran %v, skipped for %q, after %v", ran, skips, took)
		}
	}
}

// TestLateAnswersToATick: a run holds the lock of the job, and each reply takes more than a second. A claimed tick waits,
// and FailOpen opens nothing, because Redis answers.
func TestLateAnswersToATick(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	if _, err := newClient(t, server.Client()).Mutex("cron:{job}").Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	relay := server.Relay()
	locks := newClient(t, relay.Client())
	r := newReplica(t, locks, idle, cronlock.FailOpen(), core.WithWait(30*time.Second), cronlock.WithStartDeadline(10*time.Second))
	r.fire(time.Now().Add(-time.Hour)) // connects, and is too late
	relay.Delay(testkit.ToClient, 1200*time.Millisecond)
	r.fire(time.Now().Truncate(time.Second))
	relay.Heal()
	r.expect(t, 0, cronlock.Late, cronlock.Overlapping)
}

// TestLostTickIsLogged: a replica that finds a tick whose runner has crashed says so, above the level of a tick that another
// replica runs.
func TestLostTickIsLogged(t *testing.T) {
	t.Parallel()
	var log logBuffer
	locks := newClient(t, testkit.Start(t).Client(), logTo(&log))
	r := newReplica(t, locks, idle)
	tick := time.Now()
	key := "cron:{job}:at:" + tick.UTC().Format(time.RFC3339Nano)
	attempt, err := locks.Once(key, core.WithFailurePolicy(core.HoldFailures)).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := attempt.Hold(t.Context(), "crashed"); err != nil {
		t.Fatal(err)
	}
	r.fire(tick)
	r.expect(t, 0, cronlock.Taken)
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "tick skipped") {
		t.Errorf("log %q", log.String())
	}
	log.Reset()
	taken := tick.Add(time.Second)
	r.fire(taken)
	r.fire(taken)
	if log.String() != "" {
		t.Errorf("a tick that has run: %q", log.String())
	}
}
