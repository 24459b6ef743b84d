package lockconformance

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

var lossTests = map[string]func(*testing.T, Subject){
	"FixedTTLExpires":            fixedTTLExpires,
	"RenewalOutlivesTTL":         renewalOutlivesTTL,
	"FrozenServersLoseTheLease":  frozenServersLoseTheLease,
	"ForgottenLeaseIsTold":       forgottenLeaseIsTold,
	"TransportErrorIsNoLoss":     transportErrorIsNoLoss,
	"MaxHoldEndsTheLease":        maxHoldEndsTheLease,
	"ExtendProlongs":             extendProlongs,
	"ClosedClientReleases":       closedClientReleases,
	"CrashedHolderCostsItsTTL":   crashedHolderCostsItsTTL,
	"MinHoldKeepsOthersOut":      minHoldKeepsOthersOut,
	"DoubleUnlockIsNotHeld":      doubleUnlockIsNotHeld,
	"UnlockWithDeadContextWorks": unlockWithDeadContextWorks,
}

// wantLost waits for the end of a lease and checks its cause.
func (w *world) wantLost(l *core.Lease, cause error) {
	w.t.Helper()
	wait(w.t, l.Done(), "the lease to end")
	w.wantErr(context.Cause(l.Context()), cause)
	w.wantErr(l.Unlock(context.Background()), core.ErrNotHeld)
}

func fixedTTLExpires(t *testing.T, s Subject) {
	w := newWorld(t, s)
	ctx := context.Background()
	lease := w.must(w.process().lock("name").Lock(ctx, core.WithFixedTTL(short)))
	until := lease.ValidUntil()
	w.wantLost(lease, core.ErrLeaseLost)
	if early := time.Until(until); early > clockGap {
		t.Errorf("ended %v before ValidUntil", early)
	}
	w.free("name")
}

func renewalOutlivesTTL(t *testing.T, s Subject) {
	w := newWorld(t, s)
	renewed := make(chan struct{}, 100)
	p := w.process(core.WithHooks(core.Hooks{Renewed: func(_ context.Context, r core.Renewed) {
		if r.Err == nil {
			renewed <- struct{}{}
		}
	}}))
	lease := w.must(p.lock("name").Lock(context.Background(), core.WithTTL(6*time.Second)))
	first := lease.ValidUntil()
	for range 4 * p.pair.Lock.members() { // one renewal each third of the TTL
		select {
		case <-renewed:
		case <-time.After(within):
			t.Fatal("no renewal")
		}
	}
	if !lease.ValidUntil().After(first) {
		t.Error("ValidUntil did not move")
	}
	w.held("name")
	w.unlock(lease)
	w.free("name")
}

// frozenServersLoseTheLease freezes everything for more than the TTL: the holder must step down by itself.
func frozenServersLoseTheLease(t *testing.T, s Subject) {
	w := newOwnWorld(t, s)
	ctx := context.Background()
	lease := w.must(w.process().lock("name").Lock(ctx, core.WithTTL(short)))
	w.each((*testkit.Server).Pause)
	wait(t, lease.Done(), "the lease to end without an answer")
	w.wantErr(context.Cause(lease.Context()), core.ErrLeaseLost)
	ended := time.Now()
	testkit.Eventually(t, within, "twice the TTL", func() bool { return time.Since(ended) > short })
	w.each((*testkit.Server).Resume)
	next := w.must(w.process().rival("name").Lock(ctx, core.WithTTL(long)))
	w.wantErr(lease.Unlock(ctx), core.ErrNotHeld)
	w.heldByRival("name")
	w.wantNewer(next, lease)
}

// forgottenLeaseIsTold restarts the servers without persistence: the next renewal finds nothing.
func forgottenLeaseIsTold(t *testing.T, s Subject) {
	w := newOwnWorld(t, s)
	ctx := context.Background()
	lease := w.must(w.process().lock("name").Lock(ctx, core.WithTTL(long)))
	short := w.must(w.process().lock("other").Lock(ctx, core.WithTTL(3*time.Second)))
	w.restart()
	w.wantLost(short, core.ErrLeaseLost)
	w.wantErr(lease.Unlock(ctx), core.ErrNotHeld)
}

// transportErrorIsNoLoss cuts all connections again and again while the lease is held.
func transportErrorIsNoLoss(t *testing.T, s Subject) {
	w := newWorld(t, s)
	var failed, renewed countdown
	failed.expect(1)
	p := w.relayed(core.WithHooks(core.Hooks{Renewed: func(_ context.Context, r core.Renewed) {
		if r.Err != nil {
			failed.done()
		} else {
			renewed.done()
		}
	}}))
	lease := w.must(p.lock("name").Lock(context.Background(), core.WithTTL(9*time.Second)))
	for _, r := range p.relays {
		r.Refuse(true)
		r.Reset()
	}
	wait(t, failed.zero(), "a renewal to fail")
	renewed.expect(1)
	p.heal()
	wait(t, renewed.zero(), "a renewal to succeed again")
	if err := lease.Context().Err(); err != nil {
		t.Fatalf("the lease ended: %v", context.Cause(lease.Context()))
	}
	w.held("name")
	w.unlock(lease)
}

func maxHoldEndsTheLease(t *testing.T, s Subject) {
	w := newWorld(t, s)
	lease := w.must(w.process().lock("name").Lock(context.Background(),
		core.WithTTL(3*time.Second), core.WithMaxHold(short)))
	w.wantLost(lease, core.ErrLeaseLost)
	w.free("name")
}

func extendProlongs(t *testing.T, s Subject) {
	w := newWorld(t, s)
	ctx := context.Background()
	lease := w.must(w.process().lock("name").Lock(ctx, core.WithFixedTTL(5*time.Second)))
	if err := lease.Extend(ctx, long); err != nil {
		t.Fatalf("extend: %v", err)
	}
	if left := time.Until(lease.ValidUntil()); left < long-within {
		t.Errorf("%v left after Extend(%v)", left, long)
	}
	if err := lease.Extend(ctx, time.Second); err != nil {
		t.Fatalf("extend by less: %v", err)
	}
	if left := time.Until(lease.ValidUntil()); left < long-within {
		t.Errorf("%v left: Extend must not shorten", left)
	}
	w.wantErr(lease.Extend(ctx, -time.Second), core.ErrInvalidOption)
	_, err := w.process().rival("name").TryLock(ctx)
	var refused *core.NotAcquiredError
	if !asError(err, &refused) || refused.RetryAfter < long-within {
		t.Errorf("Redis keeps the lease for %v", refused.RetryAfter)
	}
	w.unlock(lease)
	w.wantErr(lease.Extend(ctx, time.Second), core.ErrNotHeld)
}

func closedClientReleases(t *testing.T, s Subject) {
	w := newWorld(t, s)
	ctx := context.Background()
	p, other := w.process(), w.process()
	mine := w.must(p.lock("mine").Lock(ctx, core.WithTTL(long)))
	w.must(other.lock("theirs").Lock(ctx, core.WithTTL(long)))
	waiting := p.lineUp(ctx, "theirs")
	queued := p.lineUp(ctx, "theirs")
	if err := p.close(); err != nil {
		t.Errorf("close: %v", err)
	}
	w.wantErr(receive(t, waiting).err, core.ErrClosed)
	w.wantErr(receive(t, queued).err, core.ErrClosed)
	w.wantErr(context.Cause(mine.Context()), core.ErrClosed)
	w.wantErr(mine.Unlock(ctx), core.ErrNotHeld)
	_, err := p.lock("mine").Lock(ctx)
	w.wantErr(err, core.ErrClosed)
	if err := p.close(); err != nil {
		t.Errorf("close again: %v", err)
	}
	w.free("mine")
}

// crashedHolderCostsItsTTL cuts the holder off for good; its waiting successor comes in when the TTL is over.
func crashedHolderCostsItsTTL(t *testing.T, s Subject) {
	w := newWorld(t, s)
	ctx := context.Background()
	crashing := w.relayed()
	lease := w.must(crashing.lock("name").Lock(ctx, core.WithTTL(3*time.Second)))
	waiting := w.process().lineUp(ctx, "name")
	until := lease.ValidUntil()
	for _, r := range crashing.relays {
		r.Drop(testkit.Both)
	}
	receive(t, waiting).check(t)
	if early := time.Until(until); early > clockGap {
		t.Errorf("the successor came in %v before the lease was over", early)
	}
	wait(t, lease.Done(), "the crashed holder to step down")
}

func minHoldKeepsOthersOut(t *testing.T, s Subject) {
	w := newWorld(t, s)
	ctx := context.Background()
	before := time.Now()
	lease := w.must(w.process().lock("name").Lock(ctx, core.WithMinHold(time.Second)))
	w.unlock(lease)
	w.wantErr(lease.Unlock(ctx), core.ErrNotHeld)
	w.must(w.process().rival("name").Lock(ctx))
	if took := time.Since(before); took < time.Second {
		t.Errorf("free after %v", took)
	}
}

func doubleUnlockIsNotHeld(t *testing.T, s Subject) {
	w := newWorld(t, s)
	ctx := context.Background()
	lease := w.must(w.process().lock("name").Lock(ctx))
	const unlockers = 8
	errs := make(chan error, unlockers)
	for range unlockers {
		go func() {
			_, _ = lease.ValidUntil(), lease.Extend(ctx, long)
			errs <- lease.Unlock(ctx)
		}()
	}
	succeeded := 0
	for range unlockers {
		if err := <-errs; err == nil {
			succeeded++
		} else if !errors.Is(err, core.ErrNotHeld) {
			t.Errorf("unlock: %v", err)
		}
	}
	if succeeded != 1 {
		t.Errorf("%d of %d calls unlocked", succeeded, unlockers)
	}
	w.wantErr(context.Cause(lease.Context()), core.ErrNotHeld)
	w.free("name")
}

func unlockWithDeadContextWorks(t *testing.T, s Subject) {
	w := newWorld(t, s)
	ctx, cancel := context.WithCancel(context.Background())
	lease := w.must(w.process().lock("name").Lock(ctx, core.WithTTL(long)))
	cancel()
	if err := lease.Context().Err(); err != nil {
		t.Errorf("the lease ended with the waiting context: %v", err)
	}
	if err := lease.Unlock(ctx); err != nil {
		t.Errorf("unlock: %v", err)
	}
	w.free("name")
}
