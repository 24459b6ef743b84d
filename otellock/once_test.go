package otellock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

const (
	attempts = "holdfast.once.attempts"
	ends     = "holdfast.once.ends"
)

func mustBegin(t *testing.T, o *core.Once) *core.Attempt {
	t.Helper()
	attempt, err := o.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return attempt
}

// TestOnceAttempts: each outcome of Begin.
func TestOnceAttempts(t *testing.T) {
	t.Parallel()
	m, server := newTelemetry(t), testkit.Start(t)
	locks := m.client(server.Client())
	begin := func(want error, outcomeOfIt string, o *core.Once) {
		t.Helper()
		if _, err := o.Begin(t.Context()); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
		m.want(1, attempts, outcome(outcomeOfIt))
		m.want(1, acquisitions, strategy(core.ModeOnce), outcome(outcomeOfIt))
	}
	attempt := mustBegin(t, locks.Once("a", core.WithFingerprint([]byte("x"))))
	m.want(1, "holdfast.leases", strategy(core.ModeOnce))
	begin(core.ErrInProgress, "in_progress", locks.Once("a", core.WithFingerprint([]byte("x"))))
	begin(core.ErrFingerprintMismatch, "mismatch", locks.Once("a", core.WithFingerprint([]byte("y"))))
	if err := attempt.Complete(t.Context(), nil); err != nil {
		t.Error(err)
	}
	m.want(1, ends, outcome("completed"))
	m.want(1, "holdfast.hold.duration", strategy(core.ModeOnce), end("completed"))
	begin(core.ErrCompleted, "replayed", locks.Once("a", core.WithFingerprint([]byte("x"))))
	if err := mustBegin(t, locks.Once("b")).Hold(t.Context(), "why"); err != nil {
		t.Error(err)
	}
	m.want(1, ends, outcome("held"))
	begin(core.ErrOutcomeUnknown, "unknown", locks.Once("b"))
	begin(core.ErrOutsideWindow, "refused", locks.Once("c", core.WithWindow(time.Unix(0, 0), time.Unix(1, 0))))
	if err := mustBegin(t, locks.Once("d")).Release(t.Context()); err != nil {
		t.Error(err)
	}
	m.want(1, ends, outcome("released"))
	m.want(3, attempts, outcome("begun"))
	server.Kill()
	begin(core.ErrUnavailable, "unavailable", locks.Once("e"))
	m.want(0, "holdfast.leases")
}

// TestOnceWaits: a call that waits for another attempt is a waiter until it gets the result.
func TestOnceWaits(t *testing.T) {
	t.Parallel()
	m := newTelemetry(t)
	locks := m.client(testkit.Start(t).Client())
	attempt := mustBegin(t, locks.Once("a"))
	replayed := make(chan error, 1)
	go func() {
		_, err := locks.Once("a", core.WithWait(within)).Do(t.Context(), func(context.Context) ([]byte, error) {
			return nil, errors.New("the waiter ran")
		})
		replayed <- err
	}()
	m.eventually(1, "holdfast.waiters", strategy(core.ModeOnce))
	if err := attempt.Complete(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if err := <-replayed; err != nil {
		t.Error(err)
	}
	m.want(1, acquisitions, strategy(core.ModeOnce), outcome("replayed"), contended(true))
	m.want(0, "holdfast.waiters")
}

// TestOnceLost: an attempt whose lease was lost counts as one lease, and its late end by itself.
func TestOnceLost(t *testing.T) {
	t.Parallel()
	m := newTelemetry(t)
	locks := m.client(testkit.Start(t).Client())
	attempt := mustBegin(t, locks.Once("a", core.WithMaxHold(50*time.Millisecond)))
	<-attempt.Context().Done()
	m.wantLost(core.ModeOnce, "max_hold")
	if err := attempt.Complete(context.Background(), nil); err != nil {
		t.Error(err)
	}
	m.want(1, ends, outcome("completed"))
	m.wantLost(core.ModeOnce, "max_hold")
}

// TestOnceStale: an attempt that another one has followed.
func TestOnceStale(t *testing.T) {
	t.Parallel()
	m := newTelemetry(t)
	locks := m.client(testkit.Start(t).Client())
	attempt := mustBegin(t, locks.Once("a"))
	seen, err := locks.Once("a").Peek(t.Context())
	if err == nil {
		err = locks.Once("a").ForgetRunning(t.Context(), seen)
	}
	if err != nil {
		t.Fatal(err)
	}
	second := mustBegin(t, locks.Once("a"))
	if err := attempt.Complete(t.Context(), nil); !errors.Is(err, core.ErrStale) {
		t.Error(err)
	}
	m.want(1, ends, outcome("stale"))
	if err := second.Complete(t.Context(), nil); err != nil {
		t.Error(err)
	}
	m.want(0, "holdfast.leases")
}

// proof has a fixed answer.
type proof struct {
	found *core.Committed
	err   error
}

func (p *proof) Committed(context.Context, string) (*core.Committed, error) { return p.found, p.err }
func (p *proof) Resolve(context.Context, string, core.Committed) error      { return nil }
func (p *proof) OnlyEffect() bool                                           { return false }

// TestProofs counts questions to a proof by their answers.
func TestProofs(t *testing.T) {
	t.Parallel()
	m, server := newTelemetry(t), testkit.Start(t)
	p := new(proof)
	once := m.client(server.Client()).Once("a", core.WithProof(p))
	if err := mustBegin(t, once).Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	for answer, give := range map[string]proof{"absent": {}, "undecided": {err: errors.New("away")}} {
		*p = give
		if attempt, err := once.Begin(t.Context()); err == nil {
			_ = attempt.Release(t.Context())
		}
		m.want(1, "holdfast.proofs", outcome(answer))
	}
	*p = proof{found: new(core.Committed)}
	if _, err := once.Begin(t.Context()); !errors.Is(err, core.ErrCompleted) {
		t.Error(err)
	}
	m.want(1, "holdfast.proofs", outcome("committed"))
}
