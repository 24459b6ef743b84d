package otellock_test

import (
	"context"
	"errors"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/otellock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

const acquisitions = "holdfast.acquire.duration"

// TestAcquired: a free lock and one after a wait, of each strategy of one Redis.
func TestAcquired(t *testing.T) {
	t.Parallel()
	m := newTelemetry(t)
	locks := m.client(testkit.Start(t).Client())
	for name, lock := range map[core.Mode]*core.Lock{
		core.ModeMutex: locks.Mutex("a"), core.ModeFair: locks.Fair("b"), core.ModeWrite: locks.Write("c"),
		core.ModeSemaphore: locks.Semaphore("d", 1),
	} {
		lease := mustLock(t, lock)
		m.want(1, acquisitions, strategy(name), outcome("acquired"), contended(false))
		m.want(1, "holdfast.leases", strategy(name))
		waiting := m.waits(t.Context(), lock)
		m.want(1, "holdfast.waiters", strategy(name))
		unlock(t, lease)
		if err := <-waiting; err != nil {
			t.Error(err)
		}
		m.want(1, acquisitions, strategy(name), outcome("acquired"), contended(true))
		m.want(2, "holdfast.hold.duration", strategy(name), end("released"))
		m.want(0, "holdfast.leases", strategy(name))
		m.want(0, "holdfast.waiters", strategy(name))
	}
	unlock(t, mustLock(t, locks.Read("c")))
	m.want(1, acquisitions, strategy(core.ModeRead), outcome("acquired"))
	m.want(0, "holdfast.leases.lost")
}

// TestNotAcquired: each way to get no lease.
func TestNotAcquired(t *testing.T) {
	t.Parallel()
	m := newTelemetry(t)
	locks := m.client(testkit.Start(t).Client(), core.WithMaxWaiters(1))
	lock := locks.Mutex("a")
	held := mustLock(t, lock)

	if _, err := lock.TryLock(t.Context()); !errors.Is(err, core.ErrNotAcquired) {
		t.Error(err)
	}
	m.want(1, acquisitions, outcome("refused"), contended(true))

	if err := <-m.waits(t.Context(), lock, core.WithWait(time.Second)); !errors.Is(err, core.ErrNotAcquired) {
		t.Error(err)
	}
	m.want(1, acquisitions, outcome("timed_out"))

	soon, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := <-m.waits(soon, lock); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	m.want(2, acquisitions, outcome("timed_out"))

	ctx, cancel := context.WithCancel(t.Context())
	waiting := m.waits(ctx, lock)
	if _, err := lock.Lock(t.Context()); !errors.Is(err, core.ErrTooManyWaiters) {
		t.Error(err)
	}
	m.want(1, acquisitions, outcome("too_many_waiters"))
	cancel()
	if err := <-waiting; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	m.want(1, acquisitions, outcome("canceled"))

	if _, err := lock.Lock(t.Context(), core.WithOwner(held.Owner())); err != nil {
		t.Error(err)
	}
	if _, err := locks.Read("r").Lock(t.Context(), core.WithOwner("o")); err != nil {
		t.Error(err)
	}
	if _, err := locks.Write("r").Lock(t.Context(), core.WithOwner("o")); !errors.Is(err, core.ErrUpgrade) {
		t.Error(err)
	}
	m.want(1, acquisitions, strategy(core.ModeWrite), outcome("failed"))
	m.want(3, "holdfast.leases")
	m.want(0, "holdfast.waiters")
}

// TestOutage: calls that find no Redis, and a release that is not confirmed.
func TestOutage(t *testing.T) {
	t.Parallel()
	m := newTelemetry(t)
	server := testkit.Start(t)
	locks := m.client(server.Client())
	lease := mustLock(t, locks.Mutex("a"))
	server.Kill()
	if _, err := locks.Mutex("b").TryLock(t.Context()); !errors.Is(err, core.ErrUnavailable) {
		t.Error(err)
	}
	m.want(1, acquisitions, outcome("unavailable"), contended(false))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := lease.Unlock(ctx); err == nil {
		t.Error("released without a Redis")
	}
	m.want(1, "holdfast.hold.duration", end("unconfirmed"))
	m.want(0, "holdfast.leases")
	m.want(0, "holdfast.leases.lost")
}

// TestClose: it ends waits and leases, and the counts with them.
func TestClose(t *testing.T) {
	t.Parallel()
	m := newTelemetry(t)
	locks := m.client(testkit.Start(t).Client())
	mustLock(t, locks.Mutex("a"))
	mustLock(t, locks.Fair("b"))
	first, second := m.waits(t.Context(), locks.Mutex("a")), m.waits(t.Context(), locks.Fair("b"))
	if err := locks.Close(); err != nil {
		t.Error(err)
	}
	for _, waiting := range []<-chan error{first, second} {
		if err := <-waiting; !errors.Is(err, core.ErrClosed) {
			t.Error(err)
		}
	}
	m.want(2, acquisitions, outcome("closed"))
	m.want(2, "holdfast.leases.lost", cause("closed"))
	m.want(2, "holdfast.hold.duration", end("closed"))
	m.want(0, "holdfast.leases")
	m.want(0, "holdfast.waiters")
}

// TestInvalidText: exporters refuse attributes that are not valid UTF-8, so names of locks are made so.
func TestInvalidText(t *testing.T) {
	t.Parallel()
	m := newTelemetry(t, otellock.WithFamily(otellock.Prefix(":")), otellock.WithNames(), otellock.WithSemaphores("\xff"))
	locks := m.client(testkit.Start(t).Client())
	unlock(t, mustLock(t, locks.Mutex("a\xff:1")))
	unlock(t, mustLock(t, locks.Semaphore("\xff", 1)))
	m.want(1, acquisitions, family("a\uFFFD"))
	m.want(0, "holdfast.permits.usage", named("\uFFFD"))
	for _, span := range m.ended("holdfast.acquire") {
		for _, attribute := range span.Attributes() {
			if !utf8.ValidString(attribute.Value.Emit()) {
				t.Errorf("%s is %q", attribute.Key, attribute.Value.Emit())
			}
		}
	}
}
