package otellock_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// panics calls fn and returns whether it panicked.
func panics(fn func()) (did bool) {
	defer func() { did = recover() != nil }()
	fn()
	return false
}

// TestPanicInWork: the lease of a function that panics is released, and counted so.
func TestPanicInWork(t *testing.T) {
	t.Parallel()
	m := newTelemetry(t)
	locks := m.client(testkit.Start(t).Client())
	for range 3 {
		if !panics(func() {
			_ = locks.Mutex("a").Do(t.Context(), func(context.Context) error { panic("work") })
		}) {
			t.Error("no panic")
		}
	}
	m.want(3, "holdfast.hold.duration", end("released"))
	m.want(0, "holdfast.leases")
}

// TestPanicInOtherHook: hooks of the user that panic, before and after these, do not make the counts wrong.
func TestPanicInOtherHook(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	for name, hooks := range map[string]core.Hooks{
		"AcquireEnd": {AcquireEnd: func(context.Context, core.AcquireEnd) { panic("hook") }},
		"Wait":       {Wait: func(context.Context, core.Wait) { panic("hook") }},
		"BeginEnd":   {BeginEnd: func(context.Context, core.BeginEnd) { panic("hook") }},
		"ReleaseEnd": {ReleaseEnd: func(context.Context, core.ReleaseEnd) { panic("hook") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newTelemetry(t)
			before := m.client(server.Client(), core.WithPrefix(name+":"), core.WithHooks(hooks))
			other := newTelemetry(t).client(server.Client(), core.WithPrefix(name+":"))
			hold, attempt := mustLock(t, other.Mutex("held")), mustBegin(t, other.Once("e"))
			panics(func() { _ = before.Mutex("a").Do(t.Context(), func(context.Context) error { return nil }) })
			panics(func() {
				_ = core.Multi(before.Mutex("b"), before.Mutex("c")).Do(t.Context(), func(context.Context) error { return nil })
			})
			panics(func() {
				_, _ = before.Once("d").Do(t.Context(), func(context.Context) ([]byte, error) { return nil, nil })
			})
			panics(func() {
				_, _ = before.Once("e", core.WithWait(2*time.Second)).Begin(t.Context())
			})
			panics(func() { _, _ = before.Mutex("held").Lock(t.Context(), core.WithWait(2*time.Second)) })
			unlock(t, hold)
			if err := attempt.Complete(t.Context(), nil); err != nil {
				t.Error(err)
			}
			m.want(0, "holdfast.leases")
			m.want(0, "holdfast.waiters")
		})
	}
}
