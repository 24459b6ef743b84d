package client_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestGrantDuringClose: what is granted while Close runs is given back.
func TestGrantDuringClose(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	rdb, relay := server.Client(), server.Relay()
	locks := coretest.NewClient(t, relay.Client(), core.WithTTL(coretest.Long))
	held := coretest.MustLock(t, locks.Mutex("held"))
	granted := make(chan struct{})
	coretest.Nth(relay, "lock:name", 1, func() { relay.Hold(testkit.ToClient); close(granted) })
	locked := coretest.LockLater(locks.Mutex("name"))
	coretest.WaitFor(t, granted, "the request")
	closed := make(chan error, 1)
	go func() { closed <- locks.Close() }()
	coretest.WaitFor(t, held.Done(), "Close to begin")
	relay.Deliver()
	coretest.WantErr(t, coretest.Receive(t, locked), core.ErrClosed)
	if err := coretest.Receive(t, closed); err != nil {
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
	locks := coretest.NewClient(t, relay.Client(func(o *redis.Options) { o.ReadTimeout = -1 }), core.WithTTL(coretest.Long))
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("name")))
	asked := make(chan struct{})
	coretest.Nth(relay, "lock:name", 1, func() { relay.Hold(testkit.ToClient); close(asked) })
	locked := coretest.LockLater(locks.Mutex("name"))
	coretest.WaitFor(t, asked, "the request")
	closed := make(chan error, 1)
	go func() { closed <- locks.Close() }()
	_ = coretest.Receive(t, closed)
	if err := coretest.Receive(t, locked); err == nil {
		t.Error("locked")
	}
	relay.Heal()
}

// TestCloseOfManyDespiteSilence: of more leases than are released at a time, each would be waited for in vain.
func TestCloseOfManyDespiteSilence(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := coretest.NewClient(t, server.Client(), core.WithTTL(coretest.Long), core.WithLogger(nil))
	if _, err := coretest.LockMany(locks, 4000); err != nil {
		t.Fatal(err)
	}
	server.Pause()
	closed := make(chan error, 1)
	go func() { closed <- locks.Close() }()
	if err := coretest.Receive(t, closed); err == nil {
		t.Error("what a frozen server did not hear of is said to be released")
	}
	server.Resume()
}

// TestCloseFinishesReleases: what is still to be released in the background is released when Close returns.
func TestCloseFinishesReleases(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	lease := coretest.MustLock(t, locks.Mutex("name"))
	rdb.ConfigSet(ctx, "min-replicas-to-write", "1")
	coretest.WantErr(t, lease.Unlock(ctx), core.ErrUnavailable)
	time.AfterFunc(200*time.Millisecond, func() { rdb.ConfigSet(ctx, "min-replicas-to-write", "0") })
	if err := locks.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if rdb.Exists(ctx, "lock:name").Val() != 0 {
		t.Error("Close left a lock behind")
	}
}

// TestCloseWithUnconfirmedEnds: Redis stays away, and Close says what it has given up.
func TestCloseWithUnconfirmedEnds(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	relay := server.Relay()
	locks, log, _ := coretest.Unconfirmed(t, server, relay)
	err := locks.Close()
	coretest.WantErr(t, err, core.ErrUnavailable)
	if err == nil || !strings.Contains(err.Error(), "close: completions not confirmed (3)") {
		t.Errorf("close: %v", err)
	}
	if lines := log.String(); strings.Count(lines, "closed with unconfirmed completions") != 1 || !strings.Contains(lines, "completions=3") ||
		strings.Contains(lines, "once:") {
		t.Errorf("the log says %s", lines)
	}
	if err := locks.Close(); err != nil {
		t.Errorf("the second close: %v", err)
	}
}

// TestCloseSendsUnconfirmedEnds: Redis returns while Close waits.
func TestCloseSendsUnconfirmedEnds(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	relay := server.Relay()
	locks, log, running := coretest.Unconfirmed(t, server, relay)
	closed := make(chan error, 1)
	go func() { closed <- locks.Close() }()
	coretest.WaitFor(t, running.Context().Done(), "Close to begin")
	relay.Heal()
	if err := coretest.Receive(t, closed); err != nil {
		t.Errorf("close: %v", err)
	}
	past := coretest.NewClient(t, server.Client())
	coretest.WantState(t, past.Once("done"), core.StateCompleted, 1)
	coretest.WantState(t, past.Once("held"), core.StateUnknown, 1)
	coretest.WantState(t, past.Once("idle"), core.StateNone, 1)
	if lines := log.String(); strings.Contains(lines, "completions") {
		t.Errorf("the log says %s", lines)
	}
}

// overtakenEnd returns a client with an unconfirmed completion that another attempt keeps from its record, that attempt, and the log.
// The end is sent again so late that Close comes first.
func overtakenEnd(t *testing.T) (locks *core.Client, b *core.Attempt, other *core.Once, log *coretest.Record) {
	t.Helper()
	server := testkit.Start(t)
	rdb, relay, log := server.Client(), server.Relay(), &coretest.Record{}
	coretest.LoadOnce(t, rdb)
	locks = coretest.NewClient(t, relay.Client(), core.WithTTL(coretest.Long), core.WithLogger(coretest.TextLogger(log)))
	other = coretest.NewClient(t, rdb, core.WithTTL(coretest.Long)).Once("name")
	a := coretest.MustBegin(t, locks.Once("name"))
	coretest.Abandon(t, rdb, "name")
	b = coretest.MustBegin(t, other)
	relay.Refuse(true)
	relay.Reset()
	coretest.WantUnconfirmed(t, func(ctx context.Context) error { return a.Complete(ctx, []byte("done")) })
	calls := server.CommandStats()["evalsha"].Calls
	relay.Heal()
	testkit.Eventually(t, coretest.Within, "the end to meet the other attempt often", func() bool {
		return server.CommandStats()["evalsha"].Calls > calls+7
	})
	return locks, b, other, log
}

// TestCloseWithOvertakenEnd: another attempt runs while the client closes, so its end is given up. Close says so.
func TestCloseWithOvertakenEnd(t *testing.T) {
	t.Parallel()
	locks, _, other, log := overtakenEnd(t)
	err := locks.Close()
	if coretest.WantErr(t, err, core.ErrStale); err == nil || !strings.Contains(err.Error(), "completions not confirmed (1)") {
		t.Errorf("close: %v", err)
	}
	if lines := log.String(); strings.Count(lines, "level=WARN") != 1 || !strings.Contains(lines, "completions=1") {
		t.Errorf("the log says %s", lines)
	}
	coretest.WantState(t, other, core.StateRunning, 2)
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
	if r := coretest.WantState(t, other, core.StateCompleted, 1); string(r.Value) != "done" {
		t.Errorf("%+v", r)
	}
}

// TestCloseBesideFrozenRedis: Close gives up, also if a lease was lost before to a server that does not answer. The client of
// go-redis can be closed after it, although commands are still in flight.
func TestCloseBesideFrozenRedis(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	rdb := server.Client(func(o *redis.Options) { o.ReadTimeout = time.Minute })
	locks := coretest.NewClient(t, rdb, core.WithTTL(500*time.Millisecond))
	lease := coretest.MustLock(t, locks.Mutex("lost"))
	coretest.MustLock(t, locks.Mutex("held"), core.WithTTL(coretest.Long))
	server.Pause()
	defer server.Resume()
	coretest.WaitFor(t, lease.Done(), "the loss")
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		if err := locks.Close(); err == nil {
			t.Error("Close says that all is released")
		}
		_ = rdb.Close()
	}()
	coretest.WaitFor(t, closed, "Close")
}
