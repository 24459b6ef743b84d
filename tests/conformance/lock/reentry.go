package lockconformance

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

var reentryTests = map[string]func(*testing.T, Subject){
	"LeaseContextEntersAgain":     leaseContextEntersAgain,
	"OtherContextsWait":           otherContextsWait,
	"SiblingsExcludeEachOther":    siblingsExcludeEachOther,
	"ReentryDoesNotQueue":         reentryDoesNotQueue,
	"InnerUnlockKeepsRenewing":    innerUnlockKeepsRenewing,
	"ReentryNeverShortens":        reentryNeverShortens,
	"ReentryAfterLossIsRefused":   reentryAfterLossIsRefused,
	"ExplicitOwnerEntersAnywhere": explicitOwnerEntersAnywhere,
}

func leaseContextEntersAgain(t *testing.T, s Subject) {
	w := newWorld(t, s)
	p := w.process(core.WithTTL(long))
	leases := []*core.Lease{w.must(p.lock("name").Lock(context.Background()))}
	for range 3 {
		outer := leases[len(leases)-1]
		inner := w.must(p.lock("name").Lock(outer.Context()))
		if inner.Token() != outer.Token() || inner.Owner() != outer.Owner() {
			t.Errorf("inner lease is of %s, token %d, the outer of %s, %d",
				inner.Owner(), inner.Token(), outer.Owner(), outer.Token())
		}
		if token, ok := core.TokenFrom(inner.Context()); !ok || token != inner.Token() {
			t.Errorf("TokenFrom = %d, %v", token, ok)
		}
		leases = append(leases, inner)
	}
	for i, l := range []*core.Lease{leases[1], leases[0], leases[3], leases[2]} { // in whatever order
		w.held("name")
		w.unlock(l)
		if i < 3 {
			w.wantErr(l.Unlock(context.Background()), core.ErrNotHeld)
		}
	}
	w.free("name")
}

func otherContextsWait(t *testing.T, s Subject) {
	w := newWorld(t, s)
	p := w.process(core.WithTTL(long))
	w.must(p.lock("name").Lock(context.Background()))
	w.wantRefused(p.rival("name"))
}

// siblingsExcludeEachOther: the tasks of one batch, all under the batch's lease, are owners of their own on every
// other name, and each is still the owner of the batch.
func siblingsExcludeEachOther(t *testing.T, s Subject) {
	w := newWorld(t, s)
	p := w.process(core.WithTTL(long))
	batch := w.must(p.lock("batch").Lock(context.Background()))
	order := w.must(p.lock("order").Lock(batch.Context()))
	_, err := p.rival("order").TryLock(batch.Context())
	w.wantErr(err, core.ErrNotAcquired)
	w.unlock(w.must(p.lock("order").TryLock(order.Context())))

	explicit := w.must(p.lock("other").Lock(order.Context(), core.WithOwner("somebody-else")))
	again := w.must(p.lock("batch").TryLock(explicit.Context()))
	if again.Owner() != batch.Owner() || again.Token() != batch.Token() {
		t.Errorf("entered the batch as %s, token %d, not as %s, %d",
			again.Owner(), again.Token(), batch.Owner(), batch.Token())
	}
}

// reentryDoesNotQueue enters again while others of the same process are in line: waiting behind them would be
// waiting for itself.
func reentryDoesNotQueue(t *testing.T, s Subject) {
	w := newWorld(t, s)
	ctx := context.Background()
	p := w.process(core.WithTTL(long))
	outer := w.must(p.lock("name").Lock(ctx))
	waiting := p.lineUp(ctx, "name")
	inner := w.must(p.lock("name").Lock(outer.Context()))
	w.unlock(inner)
	w.unlock(outer)
	w.unlock(receive(t, waiting).check(t))
}

func innerUnlockKeepsRenewing(t *testing.T, s Subject) {
	w := newWorld(t, s)
	p := w.process(core.WithTTL(6 * time.Second))
	outer := w.must(p.lock("name").Lock(context.Background()))
	inner := w.must(p.lock("name").Lock(outer.Context()))
	w.unlock(inner)
	after := time.Now()
	testkit.Eventually(t, within, "two renewals", func() bool {
		return outer.Context().Err() != nil || outer.ValidUntil().After(after.Add(9*time.Second))
	})
	if outer.Context().Err() != nil {
		t.Fatalf("the outer lease ended: %v", context.Cause(outer.Context()))
	}
	w.held("name")
	w.unlock(outer)
	w.free("name")
}

// reentryNeverShortens enters a long lease with a short one: what the outer lease believes must stay true.
func reentryNeverShortens(t *testing.T, s Subject) {
	w := newWorld(t, s)
	p := w.process()
	outer := w.must(p.lock("name").Lock(context.Background(), core.WithFixedTTL(long)))
	inner := w.must(p.lock("name").Lock(outer.Context(), core.WithFixedTTL(short)))
	wait(t, inner.Done(), "the inner lease to end")
	if err := outer.Context().Err(); err != nil {
		t.Fatalf("the outer lease ended too: %v", context.Cause(outer.Context()))
	}
	w.held("name")
	w.unlock(outer)
}

// reentryAfterLossIsRefused deletes the lock under its holder and lets another have it: the former holder's
// owner must not get in on the strength of what it remembers.
func reentryAfterLossIsRefused(t *testing.T, s Subject) {
	w := newOwnWorld(t, s)
	p := w.process(core.WithTTL(long))
	lease := w.must(p.lock("name").Lock(context.Background()))
	w.restart() // nothing was saved
	next := w.must(w.process(core.WithTTL(long)).rival("name").Lock(context.Background()))
	_, err := p.lock("name").TryLock(lease.Context())
	w.wantErr(err, core.ErrNotAcquired)
	w.unlock(next)
}

func explicitOwnerEntersAnywhere(t *testing.T, s Subject) {
	w := newWorld(t, s)
	ctx := context.Background()
	owner := core.WithOwner("4f1c27e6-job-7")
	a, b := w.process(core.WithTTL(long)), w.process(core.WithTTL(long))
	first := w.must(a.lock("name").TryLock(ctx, owner))
	second := w.must(b.lock("name").TryLock(ctx, owner))
	if first.Token() != second.Token() || second.Owner() != "4f1c27e6-job-7" {
		t.Errorf("tokens %d and %d, owner %s", first.Token(), second.Token(), second.Owner())
	}
	w.held("name")
	w.unlock(first)
	w.held("name")
	w.unlock(second)
	w.free("name")
}
