package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestArguments: what New refuses and takes.
func TestArguments(t *testing.T) {
	t.Parallel()
	for name, rdb := range map[string]redis.UniversalClient{"nil": nil, "typed nil": (*redis.Client)(nil)} {
		if _, err := core.New(rdb); !errors.Is(err, core.ErrInvalidOption) {
			t.Errorf("%s: %v", name, err)
		}
	}
	rdb := testkit.Start(t).Client()
	_, err := core.New(rdb, core.WithTTL(-1))
	coretest.WantErr(t, err, core.ErrInvalidOption)
	locks := coretest.NewClient(t, rdb, core.WithLogger(nil))
	lease := coretest.MustLock(t, locks.Mutex(strings.Repeat("x", 512)), core.WithTTL(10*time.Millisecond), core.WithFixedTTL(time.Second))
	coretest.WaitFor(t, lease.Done(), "the lease to end, which is logged")
	for _, owner := range []string{"granted", "min_hold_until", "ttl", "token", "token_committed", "ä", "x\x7f"} {
		_, err := locks.Mutex("name", core.WithOwner(owner)).TryLock(context.Background())
		coretest.WantErr(t, err, core.ErrInvalidOption)
	}
}

// TestNamesAreKept: locks, leases and records return the name that they were made with, without the prefix.
func TestNamesAreKept(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithPrefix("app:"))
	for kind, strategy := range coretest.Strategies(locks) {
		lock := strategy("{order}:42 " + kind)
		lease := coretest.MustLock(t, lock)
		if lock.Name() != "{order}:42 "+kind || lease.Name() != lock.Name() {
			t.Errorf("%s: lock %q, lease %q", kind, lock.Name(), lease.Name())
		}
		coretest.Unlock(t, lease)
	}
	if key := locks.Once("{order}:42").Key(); key != "{order}:42" {
		t.Errorf("record %q", key)
	}
}

// TestRingIsRefused: its Subscribe panics without channels, and it has no server to fail over to.
func TestRingIsRefused(t *testing.T) {
	t.Parallel()
	ring := redis.NewRing(&redis.RingOptions{})
	t.Cleanup(func() { _ = ring.Close() })
	_, err := core.New(ring)
	coretest.WantErr(t, err, core.ErrInvalidOption)
	if err != nil && !strings.Contains(err.Error(), "*redis.Ring") {
		t.Errorf("the error does not name it: %v", err)
	}
	_, err = core.NewRedlock([]redis.UniversalClient{ring, ring, ring})
	coretest.WantErr(t, err, core.ErrInvalidOption)
}

// otherMake is a client that is not go-redis's own, and does not subscribe.
type otherMake struct{ redis.UniversalClient }

func (otherMake) Subscribe(context.Context, ...string) *redis.PubSub {
	panic("at least one channel is required")
}

// silentMake subscribes to nothing.
type silentMake struct{ redis.UniversalClient }

func (silentMake) Subscribe(context.Context, ...string) *redis.PubSub { return nil }

// TestForeignRedisClient: that it panics ends no process; waiters look by themselves.
func TestForeignRedisClient(t *testing.T) {
	for name, wrap := range map[string]func(redis.UniversalClient) redis.UniversalClient{
		"Panics": func(rdb redis.UniversalClient) redis.UniversalClient { return otherMake{rdb} },
		"Nil":    func(rdb redis.UniversalClient) redis.UniversalClient { return silentMake{rdb} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log, server := &coretest.Record{}, testkit.Start(t)
			locks := coretest.NewClient(t, wrap(server.Client()), core.WithLogger(coretest.TextLogger(log)))
			for strategy, lock := range map[string]core.Strategy{"Mutex": locks.Mutex, "Fair": locks.Fair, "Write": locks.Write} {
				lease := coretest.MustLock(t, lock(strategy))
				waiting := coretest.LockLater(lock(strategy))
				testkit.Eventually(t, coretest.Within, "the waiter to subscribe", func() bool {
					return strings.Contains(log.String(), "does not subscribe")
				})
				coretest.Unlock(t, lease)
				if err := coretest.Receive(t, waiting); err != nil {
					t.Errorf("%s: %v", strategy, err)
				}
			}
		})
	}
}

// TestDurationsWithoutUnit: a number without a unit is one of nanoseconds. The error of each option says what was probably meant.
func TestDurationsWithoutUnit(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	for option, use := range map[string]func(d time.Duration) core.Option{
		"WithTTL":         func(d time.Duration) core.Option { return core.WithTTL(d) },
		"WithFixedTTL":    func(d time.Duration) core.Option { return core.WithFixedTTL(d) },
		"WithWait":        func(d time.Duration) core.Option { return core.WithWait(d) },
		"WithMaxHold":     func(d time.Duration) core.Option { return core.WithMaxHold(d) },
		"WithMinHold":     func(d time.Duration) core.Option { return core.WithMinHold(d) },
		"WithReplicaAck":  func(d time.Duration) core.Option { return core.WithReplicaAck(1, d) },
		"WithWaitWarning": core.WithWaitWarning, "WithHoldWarning": core.WithHoldWarning,
		"WithNodeTimeout": core.WithNodeTimeout, "WithRestartDelay": core.WithRestartDelay,
	} {
		for d, want := range map[time.Duration]string{30: "did you mean 30*time.Second?", 5000: "did you mean 5000*time.Millisecond or 5000*time.Second?"} {
			_, err := core.New(rdb, use(d))
			if !errors.Is(err, core.ErrInvalidOption) || !strings.Contains(err.Error(), option+"(") || !strings.Contains(err.Error(), want) {
				t.Errorf("%s(%v): %v", option, d, err)
			}
		}
	}
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	_, retention := locks.Once("name", core.WithRetention(24)).Begin(context.Background())
	if !strings.Contains(retention.Error(), "did you mean 24*time.Second?") {
		t.Error(retention)
	}
	extend := coretest.MustLock(t, locks.Mutex("name")).Extend(context.Background(), 30)
	if !strings.Contains(extend.Error(), "did you mean 30*time.Second?") {
		t.Error(extend)
	}
	for _, meant := range []time.Duration{0, -time.Second, time.Millisecond, 999_999} { // wrong for other reasons
		if _, err := core.New(rdb, core.WithTTL(meant)); err == nil || strings.Contains(err.Error(), "unit") {
			t.Errorf("WithTTL(%v): %v", meant, err)
		}
	}
}
