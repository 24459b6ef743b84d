package waiting_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestRefusedInLine: a waiter behind another one of its process gets the same refusal.
func TestRefusedInLine(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	held := coretest.MustLock(t, coretest.NewClient(t, rdb).Mutex("name"), core.WithTTL(coretest.Long))
	locks := coretest.NewClient(t, rdb)
	first := coretest.LockLater(locks.Mutex("name"))
	coretest.AwaitListeners(t, locks, "name", 1)
	_, err := locks.Mutex("name").Lock(ctx, core.WithWait(50*time.Millisecond))
	var refused *core.NotAcquiredError
	if !errors.As(err, &refused) || refused.RetryAfter < coretest.Long-coretest.Within {
		t.Errorf("refused with %+v", refused)
	}
	coretest.Unlock(t, held)
	if err := coretest.Receive(t, first); err != nil {
		t.Error(err)
	}
	_ = locks.Close()
	_, err = locks.ForceUnlock(ctx, "name")
	coretest.WantErr(t, err, core.ErrClosed)
}

// TestRefusedSubscriptions: a user without the right to subscribe waits by polling, and does not connect over and over.
func TestRefusedSubscriptions(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	holder := coretest.MustLock(t, coretest.NewClient(t, server.Client()).Mutex("name"), core.WithTTL(coretest.Long))
	log := &coretest.Record{}
	locks := coretest.NewClient(t, coretest.Restricted(t, server, "+@all", "-subscribe"), core.WithLogger(coretest.TextLogger(log)))
	waiting := coretest.LockLater(locks.Mutex("name"))
	testkit.Eventually(t, coretest.Within, "the refusal to be logged", func() bool {
		return strings.Contains(log.String(), "does not let this user subscribe")
	})
	before := server.CommandStats()["subscribe"]
	looks := server.CommandStats()["evalsha"].Calls
	testkit.Eventually(t, coretest.Within, "some looks at the lock", func() bool {
		return server.CommandStats()["evalsha"].Calls > looks+4
	})
	if tries := server.CommandStats()["subscribe"].Rejected - before.Rejected; tries > 4 {
		t.Errorf("%d subscriptions were tried meanwhile", tries)
	}
	coretest.Unlock(t, holder)
	if err := coretest.Receive(t, waiting); err != nil {
		t.Errorf("waiter: %v", err)
	}
}

// TestDeadSubscriptionIsReplaced: a connection that says nothing is found out by pings.
func TestDeadSubscriptionIsReplaced(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	held := coretest.MustLock(t, coretest.NewClient(t, server.Client()).Mutex("name"), core.WithTTL(coretest.Long))
	relay := server.Relay()
	locks := coretest.NewClient(t, relay.Client(func(o *redis.Options) { o.ReadTimeout = 300 * time.Millisecond }))
	waiting := coretest.LockLater(locks.Mutex("name"))
	testkit.Eventually(t, coretest.Within, "a subscription", func() bool {
		return server.CommandStats()["subscribe"].Calls == 1
	})
	relay.DropExisting(testkit.ToClient)
	testkit.Eventually(t, coretest.Within, "another subscription", func() bool {
		return server.CommandStats()["subscribe"].Calls > 1
	})
	coretest.Unlock(t, held)
	if err := coretest.Receive(t, waiting); err != nil {
		t.Error(err)
	}
}

// TestFreedWithoutAMessage: a waiter whose subscription is in order does not rely on it. No message says that a key is
// deleted, and its time would have ended only recently.
func TestFreedWithoutAMessage(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	rdb := server.Client()
	coretest.MustLock(t, coretest.NewClient(t, rdb).Mutex("name"), core.WithTTL(coretest.Long))
	locks := coretest.NewClient(t, rdb)
	waiting := coretest.LockLater(locks.Mutex("name"))
	coretest.AwaitListeners(t, locks, "name", 1)
	looks := func() int64 { return server.CommandStats()["evalsha"].Calls }
	before := looks()
	testkit.Eventually(t, coretest.Within, "the look after the subscription is confirmed, or the next one", func() bool {
		return looks() > before
	})
	if err := rdb.Del(context.Background(), "lock:name").Err(); err != nil {
		t.Fatal(err)
	}
	if err := coretest.Receive(t, waiting); err != nil {
		t.Error(err)
	}
}

// TestSubscriptionEndsWhenIdle: once no caller waits any more, the connection is closed.
func TestSubscriptionEndsWhenIdle(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	coretest.MustLock(t, coretest.NewClient(t, server.Client()).Mutex("name"), core.WithTTL(coretest.Long))
	locks := coretest.NewClient(t, server.Client())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { _, err := locks.Mutex("name").Lock(ctx); done <- err }()
	coretest.AwaitListeners(t, locks, "name", 1)
	line := regexp.MustCompile(`(?m)^(id=\d+ ).* sub=1 `).FindStringSubmatch(coretest.ClientList(t, server))
	if line == nil {
		t.Fatal("no subscription")
	}
	cancel()
	coretest.WantErr(t, coretest.Receive(t, done), core.ErrNotAcquired)
	testkit.Eventually(t, coretest.Within, "the subscription's connection to be closed", func() bool {
		return !strings.Contains(coretest.ClientList(t, server), line[1])
	})
}

// TestReleaseAnnouncedToRedisson: also for names that bring their own hash tag.
func TestReleaseAnnouncedToRedisson(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	lease := coretest.MustLock(t, coretest.NewClient(t, rdb, core.WithPrefix("")).Mutex("{a}:name"))
	told := coretest.Subscribe(t, rdb, "redisson_lock__channel:{a}:name")
	coretest.Unlock(t, lease)
	if got := told(); got != "0" {
		t.Errorf("message %q, want 0", got)
	}
}

// TestMuteUserIsWarned: once, that waiters only poll.
func TestMuteUserIsWarned(t *testing.T) {
	t.Parallel()
	out := &coretest.Record{}
	locks := coretest.NewClient(t, coretest.Restricted(t, testkit.Start(t), "+@all", "-publish"),
		core.WithLogger(coretest.TextLogger(out)))
	for range 2 {
		coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("name")))
	}
	if n := strings.Count(out.String(), "refuses PUBLISH"); n != 1 {
		t.Errorf("warned %d times", n)
	}
}
