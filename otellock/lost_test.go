package otellock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/otellock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// wantLost waits until one lease is lost for this cause, and checks that it is counted once.
func (m *telemetry) wantLost(of core.Mode, why string) {
	m.t.Helper()
	m.eventually(1, "holdfast.leases.lost", strategy(of), cause(why))
	m.eventually(1, "holdfast.hold.duration", strategy(of), end(why))
	m.want(1, "holdfast.hold.duration", strategy(of))
	m.want(0, "holdfast.leases", strategy(of))
}

// TestLost: each cause by itself; an Unlock afterwards counts nothing.
func TestLost(t *testing.T) {
	t.Parallel()
	for why, lose := range map[string]func(t *testing.T, m *telemetry, server *testkit.Server) *core.Lease{
		"expired": func(t *testing.T, m *telemetry, server *testkit.Server) *core.Lease {
			lease := mustLock(t, m.client(server.Client(), core.WithTTL(300*time.Millisecond)).Mutex("a"))
			server.Pause()
			t.Cleanup(server.Resume)
			return lease
		},
		"fixed_ttl": func(t *testing.T, m *telemetry, server *testkit.Server) *core.Lease {
			return mustLock(t, m.client(server.Client()).Mutex("a"), core.WithFixedTTL(100*time.Millisecond))
		},
		"max_hold": func(t *testing.T, m *telemetry, server *testkit.Server) *core.Lease {
			return mustLock(t, m.client(server.Client()).Mutex("a"), core.WithMaxHold(100*time.Millisecond))
		},
		"gone": func(t *testing.T, m *telemetry, server *testkit.Server) *core.Lease {
			lease := mustLock(t, m.client(server.Client(), core.WithTTL(6*time.Second)).Mutex("a")) // so that a busy machine renews in time
			if err := server.Client().Del(t.Context(), "lock:a").Err(); err != nil {
				t.Fatal(err)
			}
			return lease
		},
		"forced": func(t *testing.T, m *telemetry, server *testkit.Server) *core.Lease {
			locks := m.client(server.Client(), core.WithTTL(6*time.Second))
			lease := mustLock(t, locks.Mutex("a"))
			if _, err := locks.ForceUnlock(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
			return lease
		},
		"abandoned": func(t *testing.T, m *telemetry, server *testkit.Server) *core.Lease {
			lease := mustLock(t, m.client(server.Client()).Mutex("a"))
			lease.Abandon()
			return lease
		},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			m, server := newTelemetry(t), testkit.Start(t)
			lease := lose(t, m, server)
			m.wantLost(core.ModeMutex, why)
			if why == "expired" {
				server.Resume()
			}
			if err := lease.Unlock(context.Background()); !errors.Is(err, core.ErrNotHeld) {
				t.Error(err)
			}
			m.wantLost(core.ModeMutex, why)
		})
	}
}

// TestLostAtUnlock: only the release finds that the lease is gone.
func TestLostAtUnlock(t *testing.T) {
	t.Parallel()
	m := newTelemetry(t)
	locks := m.client(testkit.Start(t).Client())
	lease := mustLock(t, locks.Mutex("a"))
	if _, err := locks.ForceUnlock(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := lease.Unlock(t.Context()); !errors.Is(err, core.ErrNotHeld) {
			t.Error(err)
		}
	}
	m.want(1, "holdfast.leases.lost")
	m.want(1, "holdfast.hold.duration")
	m.want(1, "holdfast.hold.duration", end("taken"))
	m.want(0, "holdfast.leases")
}

// TestRenewals: successful renewals report their margin; renewals during an outage are failures.
func TestRenewals(t *testing.T) {
	t.Parallel()
	m, server := newTelemetry(t), testkit.Start(t)
	const ttl = 3 * time.Second
	lease := mustLock(t, m.client(server.Client(), core.WithTTL(ttl)).Mutex("a"))
	testkit.Eventually(t, within, "a renewal to be recorded whole", func() bool {
		return m.value("holdfast.renewals", strategy(core.ModeMutex), outcome("renewed")) > 0 &&
			m.value("holdfast.renewal.margin", strategy(core.ModeMutex)) > 0 &&
			m.value("holdfast.renewal.utilization", strategy(core.ModeMutex)) > 0
	})
	mean := func(name string) float64 { p := m.points(name)[0]; return p.sum / float64(p.value) }
	if margin := mean("holdfast.renewal.margin"); margin <= 0 || margin >= ttl.Seconds() {
		t.Errorf("a margin of %v s of %v", margin, ttl)
	}
	if used := mean("holdfast.renewal.utilization"); used <= 0 || used > 1 {
		t.Errorf("%v of the TTL was used", used)
	}
	server.Kill()
	testkit.Eventually(t, within, "a renewal to fail", func() bool {
		return m.value("holdfast.renewals", outcome("unavailable")) > 0
	})
	<-lease.Done()
	m.wantLost(core.ModeMutex, "expired")
}

// TestUnlockAfterALoss: holders that unlock as soon as their lease has ended. The release and the loss may be reported in any
// order; the lease has ended by the loss, whether a renewal found it or the machine was too busy for a renewal.
func TestUnlockAfterALoss(t *testing.T) {
	t.Parallel()
	const times = 20
	m, server := newTelemetry(t, otellock.WithHoldSpans()), testkit.Start(t)
	locks := m.client(server.Client(), core.WithTTL(2*time.Second))
	var holders sync.WaitGroup
	for i := range times {
		name := fmt.Sprint(i)
		lease := mustLock(t, locks.Mutex(name))
		server.Client().Del(t.Context(), "lock:"+name)
		holders.Go(func() {
			<-lease.Done()
			if err := lease.Unlock(t.Context()); !errors.Is(err, core.ErrNotHeld) {
				t.Error(err)
			}
		})
	}
	holders.Wait()
	m.eventually(times, "holdfast.leases.lost")
	m.eventually(times, "holdfast.hold.duration")
	for _, otherwise := range []string{"unconfirmed", "released"} {
		m.want(0, "holdfast.hold.duration", end(otherwise))
	}
	m.eventually(0, "holdfast.leases")
	for _, span := range m.ended("holdfast.hold") {
		if span.Status().Code != codes.Error {
			t.Errorf("%v", span.Attributes())
		}
	}
}
