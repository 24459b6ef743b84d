package core_test

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
)

// TestRefusedInLine: a waiter behind another one of its process gets the same refusal.
func TestRefusedInLine(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	held := mustLock(t, newClient(t, rdb).Mutex("name"), core.WithTTL(long))
	locks := newClient(t, rdb)
	first := lockLater(locks.Mutex("name"))
	awaitListeners(t, locks, "name", 1)
	_, err := locks.Mutex("name").Lock(ctx, core.WithWait(50*time.Millisecond))
	var refused *core.NotAcquiredError
	if !errors.As(err, &refused) || refused.RetryAfter < long-within {
		t.Errorf("refused with %+v", refused)
	}
	unlock(t, held)
	if err := receive(t, first); err != nil {
		t.Error(err)
	}
	_ = locks.Close()
	_, err = locks.ForceUnlock(ctx, "name")
	wantErr(t, err, core.ErrClosed)
}

// TestRefusedSubscriptions: a user without the right to subscribe waits by polling, and does not connect over and over.
func TestRefusedSubscriptions(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	holder := mustLock(t, newClient(t, server.Client()).Mutex("name"), core.WithTTL(long))
	log := &record{}
	locks := newClient(t, restricted(t, server, "+@all", "-subscribe"), core.WithLogger(textLogger(log)))
	waiting := lockLater(locks.Mutex("name"))
	testkit.Eventually(t, within, "the refusal to be logged", func() bool {
		return strings.Contains(log.String(), "does not let this user subscribe")
	})
	before := server.CommandStats()["subscribe"]
	looks := server.CommandStats()["evalsha"].Calls
	testkit.Eventually(t, within, "some looks at the lock", func() bool {
		return server.CommandStats()["evalsha"].Calls > looks+4
	})
	if tries := server.CommandStats()["subscribe"].Rejected - before.Rejected; tries > 4 {
		t.Errorf("%d subscriptions were tried meanwhile", tries)
	}
	unlock(t, holder)
	if err := receive(t, waiting); err != nil {
		t.Errorf("waiter: %v", err)
	}
}

// TestDeadSubscriptionIsReplaced: a connection that says nothing is found out by pings.
func TestDeadSubscriptionIsReplaced(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	held := mustLock(t, newClient(t, server.Client()).Mutex("name"), core.WithTTL(long))
	relay := server.Relay()
	locks := newClient(t, relay.Client(func(o *redis.Options) { o.ReadTimeout = 300 * time.Millisecond }))
	waiting := lockLater(locks.Mutex("name"))
	testkit.Eventually(t, within, "a subscription", func() bool {
		return server.CommandStats()["subscribe"].Calls == 1
	})
	relay.DropExisting(testkit.ToClient)
	testkit.Eventually(t, within, "another subscription", func() bool {
		return server.CommandStats()["subscribe"].Calls > 1
	})
	unlock(t, held)
	if err := receive(t, waiting); err != nil {
		t.Error(err)
	}
}

// TestFreedWithoutAMessage: a waiter whose subscription is in order does not rely on it. No message says that a key is
// deleted, and its time would not have been over for long.
func TestFreedWithoutAMessage(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	rdb := server.Client()
	mustLock(t, newClient(t, rdb).Mutex("name"), core.WithTTL(long))
	locks := newClient(t, rdb)
	waiting := lockLater(locks.Mutex("name"))
	awaitListeners(t, locks, "name", 1)
	looks := func() int64 { return server.CommandStats()["evalsha"].Calls }
	before := looks()
	testkit.Eventually(t, within, "the look after the subscription is confirmed, or the next one", func() bool {
		return looks() > before
	})
	if err := rdb.Del(context.Background(), "lock:name").Err(); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, waiting); err != nil {
		t.Error(err)
	}
}

// TestSubscriptionEndsWhenIdle: once no caller waits any more, the connection is closed.
func TestSubscriptionEndsWhenIdle(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	mustLock(t, newClient(t, server.Client()).Mutex("name"), core.WithTTL(long))
	locks := newClient(t, server.Client())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { _, err := locks.Mutex("name").Lock(ctx); done <- err }()
	awaitListeners(t, locks, "name", 1)
	line := regexp.MustCompile(`(?m)^(id=\d+ ).* sub=1 `).FindStringSubmatch(clientList(t, server))
	if line == nil {
		t.Fatal("no subscription")
	}
	cancel()
	wantErr(t, receive(t, done), core.ErrNotAcquired)
	testkit.Eventually(t, within, "the subscription's connection to be closed", func() bool {
		return !strings.Contains(clientList(t, server), line[1])
	})
}

// TestReleaseAnnouncedToRedisson: also for names that bring their own hash tag.
func TestReleaseAnnouncedToRedisson(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	lease := mustLock(t, newClient(t, rdb, core.WithPrefix("")).Mutex("{a}:name"))
	told := subscribe(t, rdb, "redisson_lock__channel:{a}:name")
	unlock(t, lease)
	if got := told(); got != "0" {
		t.Errorf("message %q, want 0", got)
	}
}

// TestMuteUserIsWarned: once, that waiters only poll.
func TestMuteUserIsWarned(t *testing.T) {
	t.Parallel()
	out := &record{}
	locks := newClient(t, restricted(t, testkit.Start(t), "+@all", "-publish"),
		core.WithLogger(textLogger(out)))
	for range 2 {
		unlock(t, mustLock(t, locks.Mutex("name")))
	}
	if n := strings.Count(out.String(), "refuses PUBLISH"); n != 1 {
		t.Errorf("warned %d times", n)
	}
}
