package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// TestGrantDuringClose: what is granted while Close runs is given back.
func TestGrantDuringClose(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rdb, relay := server.Client(), server.Relay()
	locks := newClient(t, relay.Client(), core.WithTTL(long))
	held := mustLock(t, locks.Mutex("held"))
	granted := make(chan struct{})
	nth(relay, "lock:name", 1, func() { relay.Hold(redistest.ToClient); close(granted) })
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
	relay := redistest.Start(t).Relay()
	locks := newClient(t, relay.Client(func(o *redis.Options) { o.ReadTimeout = -1 }), core.WithTTL(long))
	unlock(t, mustLock(t, locks.Mutex("name")))
	asked := make(chan struct{})
	nth(relay, "lock:name", 1, func() { relay.Hold(redistest.ToClient); close(asked) })
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
	server := redistest.Start(t)
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
	rdb := redistest.Start(t).Client()
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
