package core_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestGrantDuringClose: what is granted while Close runs is given back.
func TestGrantDuringClose(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	rdb, relay := server.Client(), server.Relay()
	locks := newClient(t, relay.Client(), core.WithTTL(long))
	held := mustLock(t, locks.Mutex("held"))
	granted := make(chan struct{})
	nth(relay, "lock:name", 1, func() { relay.Hold(testkit.ToClient); close(granted) })
	locked := lockLater(locks.Mutex("name"))
	waitFor(t, granted, "the request")
	closed := make(chan error, 1)
	go func() { closed <- locks.Close() }()
	waitFor(t, held.Done(), "Close to begin")
	relay.Deliver()
	wantErr(t, receive(t, locked), core.ErrClosed)
	if err := receive(t, closed); err != nil {
		t.Errorf("close: %v", err)
	}
	if n := rdb.Exists(context.Background(), "lock:name", "lock:held").Val(); n != 0 {
		t.Errorf("%d locks after Close", n)
	}
}

// TestCloseDespiteSilence: neither Close nor the calls that it ends wait for a connection that says nothing.
func TestCloseDespiteSilence(t *testing.T) {
	t.Parallel()
	relay := testkit.Start(t).Relay()
	locks := newClient(t, relay.Client(func(o *redis.Options) { o.ReadTimeout = -1 }), core.WithTTL(long))
	unlock(t, mustLock(t, locks.Mutex("name")))
	asked := make(chan struct{})
	nth(relay, "lock:name", 1, func() { relay.Hold(testkit.ToClient); close(asked) })
	locked := lockLater(locks.Mutex("name"))
	waitFor(t, asked, "the request")
	closed := make(chan error, 1)
	go func() { closed <- locks.Close() }()
	_ = receive(t, closed)
	if err := receive(t, locked); err == nil {
		t.Error("locked")
	}
	relay.Heal()
}

// TestCloseOfManyDespiteSilence: of more leases than are released at a time, each would be waited for in vain.
func TestCloseOfManyDespiteSilence(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := newClient(t, server.Client(), core.WithTTL(long), core.WithLogger(nil))
	if _, err := lockMany(locks, 4000); err != nil {
		t.Fatal(err)
	}
	server.Pause()
	closed := make(chan error, 1)
	go func() { closed <- locks.Close() }()
	if err := receive(t, closed); err == nil {
		t.Error("what a frozen server did not hear of is said to be released")
	}
	server.Resume()
}

// TestCloseFinishesReleases: what is still to be released in the background is released when Close returns.
func TestCloseFinishesReleases(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := newClient(t, rdb, core.WithTTL(long))
	lease := mustLock(t, locks.Mutex("name"))
	rdb.ConfigSet(ctx, "min-replicas-to-write", "1")
	wantErr(t, lease.Unlock(ctx), core.ErrUnavailable)
	time.AfterFunc(200*time.Millisecond, func() { rdb.ConfigSet(ctx, "min-replicas-to-write", "0") })
	if err := locks.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if rdb.Exists(ctx, "lock:name").Val() != 0 {
		t.Error("Close left a lock behind")
	}
}

// unconfirmed returns a client whose Redis is away, a log, and an attempt that runs. The ends of three other attempts are not
// confirmed.
func unconfirmed(t *testing.T, server *testkit.Server, relay *testkit.Relay) (*core.Client, *record, *core.Attempt) {
	t.Helper()
	log := &record{}
	locks := newClient(t, relay.Client(), core.WithTTL(long), core.WithLogger(textLogger(log)))
	loadOnce(t, server.Client())
	running := mustBegin(t, locks.Once("running"))
	done, held, idle := mustBegin(t, locks.Once("done")), mustBegin(t, locks.Once("held")), mustBegin(t, locks.Once("idle"))
	relay.Refuse(true)
	relay.Reset()
	wantUnconfirmed(t, func(ctx context.Context) error { return done.Complete(ctx, []byte("value")) })
	wantUnconfirmed(t, func(ctx context.Context) error { return held.Hold(ctx, "reason") })
	wantUnconfirmed(t, idle.Release)
	return locks, log, running
}

// wantUnconfirmed ends an attempt in an outage, with a context that ends soon.
func wantUnconfirmed(t *testing.T, end func(context.Context) error) {
	t.Helper()
	short, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	wantErr(t, end(short), core.ErrUnavailable)
}

// TestCloseWithUnconfirmedEnds: Redis stays away, and Close says what it has given up.
func TestCloseWithUnconfirmedEnds(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	relay := server.Relay()
	locks, log, _ := unconfirmed(t, server, relay)
	err := locks.Close()
	wantErr(t, err, core.ErrUnavailable)
	if err == nil || !strings.Contains(err.Error(), "close: ends of attempts not confirmed (3)") {
		t.Errorf("close: %v", err)
	}
	if lines := log.String(); strings.Count(lines, "closed before Redis confirmed") != 1 || !strings.Contains(lines, "ends=3") ||
		strings.Contains(lines, "once:") {
		t.Errorf("the log says %s", lines)
	}
	if err := locks.Close(); err != nil {
		t.Errorf("the second close: %v", err)
	}
}

// TestCloseWithUnconfirmedEndsAndLocks: the error tells of both.
func TestCloseWithUnconfirmedEndsAndLocks(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	relay := server.Relay()
	locks, _, _ := unconfirmed(t, server, relay)
	relay.Heal()
	testkit.Eventually(t, within, "all ends to be answered", func() bool { return core.UnconfirmedEnds(locks) == 0 })
	mustLock(t, locks.Mutex("name"))
	a := mustBegin(t, locks.Once("last"))
	relay.Refuse(true)
	relay.Reset()
	wantUnconfirmed(t, func(ctx context.Context) error { return a.Complete(ctx, nil) })
	err := locks.Close()
	for _, part := range []string{"ends of attempts not confirmed (1)", "release of lock \"name\" not confirmed"} {
		if wantErr(t, err, core.ErrUnavailable); !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not say %q", err, part)
		}
	}
}

// TestCloseSendsUnconfirmedEnds: Redis returns while Close waits.
func TestCloseSendsUnconfirmedEnds(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	relay := server.Relay()
	locks, log, running := unconfirmed(t, server, relay)
	closed := make(chan error, 1)
	go func() { closed <- locks.Close() }()
	waitFor(t, running.Done(), "Close to begin")
	relay.Heal()
	if err := receive(t, closed); err != nil {
		t.Errorf("close: %v", err)
	}
	past := newClient(t, server.Client())
	wantState(t, past.Once("done"), core.StateCompleted, 1)
	wantState(t, past.Once("held"), core.StateUnknown, 1)
	wantState(t, past.Once("idle"), core.StateNone, 1)
	if lines := log.String(); strings.Contains(lines, "ends of attempts") {
		t.Errorf("the log says %s", lines)
	}
}

// overtakenEnd returns a client with an unconfirmed end that another attempt keeps from its record, that attempt, and the log.
// The end is sent again so late that Close comes first.
func overtakenEnd(t *testing.T) (locks *core.Client, b *core.Attempt, other *core.Once, log *record) {
	t.Helper()
	server := testkit.Start(t)
	rdb, relay, log := server.Client(), server.Relay(), &record{}
	loadOnce(t, rdb)
	locks = newClient(t, relay.Client(), core.WithTTL(long), core.WithLogger(textLogger(log)))
	other = newClient(t, rdb, core.WithTTL(long)).Once("name")
	a := mustBegin(t, locks.Once("name"))
	abandon(t, rdb, "name")
	b = mustBegin(t, other)
	relay.Refuse(true)
	relay.Reset()
	wantUnconfirmed(t, func(ctx context.Context) error { return a.Complete(ctx, []byte("done")) })
	calls := server.CommandStats()["evalsha"].Calls
	relay.Heal()
	testkit.Eventually(t, within, "the end to meet the other attempt often", func() bool {
		return server.CommandStats()["evalsha"].Calls > calls+7
	})
	return locks, b, other, log
}

// TestCloseWithOvertakenEnd: another attempt runs while the client closes, so its end is given up. Close says so.
func TestCloseWithOvertakenEnd(t *testing.T) {
	t.Parallel()
	locks, _, other, log := overtakenEnd(t)
	err := locks.Close()
	if wantErr(t, err, core.ErrStale); err == nil || !strings.Contains(err.Error(), "ends of attempts not confirmed (1)") {
		t.Errorf("close: %v", err)
	}
	if lines := log.String(); strings.Count(lines, "level=WARN") != 1 || !strings.Contains(lines, "ends=1") {
		t.Errorf("the log says %s", lines)
	}
	wantState(t, other, core.StateRunning, 2)
}

// TestCloseAfterTheOvertakingAttempt: the other attempt has been released when the client closes, so Close records the end.
func TestCloseAfterTheOvertakingAttempt(t *testing.T) {
	t.Parallel()
	locks, b, other, _ := overtakenEnd(t)
	if err := b.Release(context.Background()); err != nil {
		t.Error(err)
	}
	if err := locks.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if r := wantState(t, other, core.StateCompleted, 1); string(r.Value) != "done" {
		t.Errorf("%+v", r)
	}
}
