package otellock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/otellock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestLeader: 0 before, 1 while the process leads, and 0 after a loss or a resignation.
func TestLeader(t *testing.T) {
	t.Parallel()
	m := newTelemetry(t, otellock.WithElections("scheduler"))
	m.want(0, "holdfast.leader", named("scheduler"))
	if len(m.points("holdfast.leader", named("scheduler"))) != 1 {
		t.Error("no series before the first campaign")
	}
	locks := m.client(testkit.Start(t).Client(), core.WithTTL(6*time.Second)) // so that a busy machine renews in time
	lead := func(name string) *core.Leadership {
		t.Helper()
		leadership, err := locks.Election(name).Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return leadership
	}
	first := lead("scheduler")
	m.want(1, "holdfast.leader", named("scheduler"))
	if _, err := locks.ForceUnlock(t.Context(), "scheduler"); err != nil {
		t.Error(err)
	}
	<-first.Context().Done()
	m.eventually(0, "holdfast.leader", named("scheduler"))
	second, other := lead("scheduler"), lead("other")
	m.want(1, "holdfast.leader")
	m.want(2, "holdfast.leases", strategy(core.ModeElection))
	for _, leadership := range []*core.Leadership{second, other} {
		if err := leadership.Resign(t.Context()); err != nil {
			t.Error(err)
		}
	}
	m.want(0, "holdfast.leader")
	m.want(0, "holdfast.leases")
}

// TestPermits: of named semaphores, with the limit, and not of re-entries.
func TestPermits(t *testing.T) {
	t.Parallel()
	m := newTelemetry(t, otellock.WithSemaphores("gateway"))
	m.want(0, "holdfast.permits.usage", named("gateway"))
	locks := m.client(testkit.Start(t).Client())
	three := mustLock(t, locks.Semaphore("gateway", 5), core.WithPermits(3))
	one := mustLock(t, locks.Semaphore("gateway", 5))
	other := mustLock(t, locks.Semaphore("other", 7))
	m.want(4, "holdfast.permits.usage", named("gateway"))
	m.want(5, "holdfast.permits.limit", named("gateway"))
	m.want(4, "holdfast.permits.usage")
	again, err := locks.Semaphore("gateway", 5).Lock(one.Context())
	if err != nil {
		t.Fatal(err)
	}
	m.want(4, "holdfast.permits.usage")
	m.want(4, "holdfast.leases")
	three.Abandon()
	m.eventually(1, "holdfast.permits.usage")
	for _, lease := range []*core.Lease{again, one, other} {
		unlock(t, lease)
	}
	m.want(0, "holdfast.permits.usage")
	m.want(0, "holdfast.leases")
}

// TestMulti: counts as its members, whether they are taken together or one after the other.
func TestMulti(t *testing.T) {
	t.Parallel()
	m := newTelemetry(t)
	locks := m.client(testkit.Start(t).Client())
	for name, multi := range map[string]*core.Lock{
		"together": core.Multi(locks.Mutex("a"), locks.Mutex("b"), locks.Mutex("c")),
		"in turn":  core.Multi(locks.Mutex("a"), locks.Fair("b"), locks.Write("c")),
	} {
		lease := mustLock(t, multi)
		m.want(3, "holdfast.leases")
		waiting := m.waits(t.Context(), multi)
		unlock(t, lease)
		if err := <-waiting; err != nil {
			t.Error(name, err)
		}
		m.want(0, "holdfast.leases")
		m.want(0, "holdfast.waiters")
		mustLock(t, multi).Abandon()
		m.eventually(0, "holdfast.leases")
		for _, name := range []string{"a", "b", "c"} {
			if _, err := locks.ForceUnlock(t.Context(), name); err != nil {
				t.Error(err)
			}
		}
	}
	m.want(6, "holdfast.leases.lost", cause("abandoned"))
}

// TestRedlock: the same metrics, with a strategy of its own.
func TestRedlock(t *testing.T) {
	t.Parallel()
	m := newTelemetry(t)
	var nodes []redis.UniversalClient
	for range 3 {
		nodes = append(nodes, testkit.Start(t).Client())
	}
	r, err := core.NewRedlock(nodes, core.WithHooks(m.hooks), core.WithTTL(2*time.Second), core.WithNodeTimeout(500*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	lease := mustLock(t, r.Mutex("a"))
	waiting := m.waits(t.Context(), r.Mutex("a"))
	m.want(1, "holdfast.waiters", strategy(core.ModeRedlock))
	testkit.Eventually(t, within, "a renewal", func() bool {
		return m.value("holdfast.renewals", strategy(core.ModeRedlock), outcome("renewed")) > 0
	})
	unlock(t, lease)
	if err := <-waiting; err != nil {
		t.Error(err)
	}
	m.want(2, acquisitions, strategy(core.ModeRedlock), outcome("acquired"))
	m.want(0, "holdfast.leases")
	m.want(0, "holdfast.waiters")
}

// TestFewSeries: 10,000 names make no more series than one, and the SDK's bound of 2,000 is not reached.
func TestFewSeries(t *testing.T) {
	t.Parallel()
	const names = 10_000
	plain, families := newTelemetry(t), newTelemetry(t, otellock.WithFamily(otellock.Prefix(":")))
	for _, m := range []*telemetry{plain, families} {
		ctx := context.Background()
		for i := range names {
			name := fmt.Sprintf("order:%d", i)
			ctx := m.hooks.AcquireStart(ctx, core.AcquireStart{Name: name, Mode: core.ModeMutex})
			m.hooks.AcquireEnd(ctx, core.AcquireEnd{Name: name, Mode: core.ModeMutex, Token: 1})
			m.hooks.ReleaseEnd(ctx, core.ReleaseEnd{Name: name, Mode: core.ModeMutex, Token: 1})
		}
		for _, metric := range []string{acquisitions, "holdfast.hold.duration", "holdfast.leases"} {
			if points := m.points(metric); len(points) != 1 || contains(points[0].attributes, []attribute.KeyValue{overflow}) {
				t.Errorf("%s has %d series: %v", metric, len(points), points)
			}
		}
		m.want(names, acquisitions, outcome("acquired"))
	}
	families.want(names, acquisitions, family("order"))
}

// TestManyFamilies: a family for each name is what the bound of the SDK is for. Counts stay exact.
func TestManyFamilies(t *testing.T) {
	t.Parallel()
	const names = 2500
	m := newTelemetry(t, otellock.WithFamily(func(name string) string { return name }))
	for i := range names {
		start := core.AcquireStart{Name: fmt.Sprint(i), Mode: core.ModeMutex}
		ctx := m.hooks.AcquireStart(context.Background(), start)
		m.hooks.AcquireEnd(ctx, core.AcquireEnd{Name: start.Name, Mode: core.ModeMutex, Token: 1})
	}
	m.want(names, "holdfast.leases")
	if len(m.points("holdfast.leases", overflow)) != 1 {
		t.Error("no overflow")
	}
}
