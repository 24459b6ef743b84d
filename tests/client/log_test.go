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

// TestLog provokes every message: each has to appear, and none may tell the name of a lock or an owner.
func TestLog(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	log := &coretest.Record{}
	logger := core.WithLogger(coretest.TextLogger(log))
	lost := make(chan struct{}, 100)
	hooks := core.WithHooks(core.Hooks{Lost: func(context.Context, core.Lost) { lost <- struct{}{} }})
	const name = "customer Lovelace"

	mute := coretest.NewClient(t, coretest.Restricted(t, server, "+@all", "-publish"), logger)
	coretest.Unlock(t, coretest.MustLock(t, mute.Mutex(name)))

	relay := server.Relay()
	locks := coretest.NewClient(t, relay.Client(), logger, hooks)
	lease := coretest.MustLock(t, locks.Mutex(name), core.WithTTL(6*time.Second))
	relay.Refuse(true)
	relay.Reset()
	testkit.Eventually(t, coretest.Within, "a failed renewal", func() bool {
		return strings.Contains(log.String(), "renewal failed")
	})
	relay.Heal()
	testkit.Eventually(t, coretest.Within, "a renewal or the loss", func() bool {
		return strings.Contains(log.String(), "renewals succeed again") || lease.Context().Err() != nil
	})
	server.Client().Del(ctx, "lock:"+name)
	select {
	case <-lost:
	case <-time.After(coretest.Within):
		t.Fatal("the loss was not told")
	}
	text := log.String()
	for _, message := range []string{"refuses PUBLISH", "renewal failed", "lease lost", "lock=3d7121ef"} {
		if !strings.Contains(text, message) {
			t.Errorf("the log does not have %q:\n%s", message, text)
		}
	}
	for _, secret := range []string{name, "Lovelace", lease.Owner()} {
		if strings.Contains(text, secret) {
			t.Errorf("the log tells %q:\n%s", secret, text)
		}
	}
}

// TestLogOfUnconfirmedEnds: nor does what is logged of a lock that could not be released, and of an attempt whose end came
// too late.
func TestLogOfUnconfirmedEnds(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	relay, log := server.Relay(), &coretest.Record{}
	locks := coretest.NewClient(t, relay.Client(), core.WithLogger(coretest.TextLogger(log)), core.WithTTL(coretest.Long))
	const name = "customer Lovelace"
	a := coretest.MustBegin(t, locks.Once(name, core.WithFixedTTL(time.Second)))
	err := locks.Mutex(name).Do(ctx, func(context.Context) error {
		relay.Refuse(true)
		relay.Reset()
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	coretest.WantErr(t, a.Complete(ctx, nil), core.ErrUnavailable)
	second := coretest.NewClient(t, server.Client()).Once(name)
	testkit.Eventually(t, coretest.Within, "another attempt", func() bool {
		next, err := second.Begin(ctx)
		return err == nil && next.Complete(ctx, nil) == nil
	})
	relay.Heal()
	for _, message := range []string{"lock not released", "completion of an attempt could not be recorded"} {
		testkit.Eventually(t, coretest.Within, message, func() bool { return strings.Contains(log.String(), message) })
	}
	if text := log.String(); strings.Contains(text, "Lovelace") {
		t.Errorf("the log tells the name:\n%s", text)
	}
}

// TestReleaseOfAHeldLockIsNoCancelledOne: Redis refuses the release of a lock that was held for good. Its caller has the error, and
// the log does not speak of a hold that no caller got.
func TestReleaseOfAHeldLockIsNoCancelledOne(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	scripts := coretest.FailScripts(rdb, redis.ErrClosed, 0)
	log := &coretest.Record{}
	locks := coretest.NewClient(t, rdb, core.WithLogger(coretest.TextLogger(log)))
	held, lost := coretest.MustLock(t, locks.Mutex("held")), coretest.MustLock(t, locks.Mutex("lost"), core.WithFixedTTL(200*time.Millisecond))
	scripts.Left.Store(coretest.Always)
	if err := held.Unlock(context.Background()); err == nil {
		t.Error("Unlock returned nil")
	}
	coretest.WaitFor(t, lost.Done(), "the end of the lease")
	if err := locks.Close(); err != nil { // waits for the background
		t.Error(err)
	}
	if strings.Contains(log.String(), "could not be removed from Redis") {
		t.Errorf("log: %s", log)
	}
}
