package lockconformance

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/core"
)

var exclusionTests = map[string]func(*testing.T, Subject){
	"OneAtATime":                oneAtATime,
	"SharesAsItSays":            sharesAsItSays,
	"NamesAreIndependent":       namesAreIndependent,
	"TryLockDoesNotWait":        tryLockDoesNotWait,
	"UnlockTouchesOnlyOwnLease": unlockTouchesOnlyOwnLease,
}

// oneAtATime lets several processes with several goroutines each fight for one name, from both sides by turns.
func oneAtATime(t *testing.T, s Subject) {
	w := newWorld(t, s)
	const processes, goroutines, rounds = 3, 4, 15
	var room room
	var total atomic.Int32
	var all sync.WaitGroup
	for range processes {
		p := w.process()
		for turn := range goroutines {
			all.Go(func() {
				for round := range rounds {
					if !w.visit(&room, p.byTurns(turn+round)) {
						return
					}
					total.Add(1)
				}
			})
		}
	}
	all.Wait()
	if got := total.Load(); got != processes*goroutines*rounds {
		t.Errorf("%d acquisitions, want %d", got, processes*goroutines*rounds)
	}
}

// visit is in the room for a moment, under the lock of that side.
func (w *world) visit(room *room, side Side) bool {
	lease, err := side.Strategy("name").Lock(context.Background())
	if err != nil {
		w.t.Errorf("lock: %v", err)
		return false
	}
	if err := room.enter(side.Shared, lease.Token()); err != nil {
		w.t.Error(err)
	}
	runtime.Gosched() // whoever has come in too may continue
	room.leave(side.Shared)
	w.unlock(lease)
	return true
}

// sharesAsItSays: a side that shares lets its own holders in together, and no other side does.
func sharesAsItSays(t *testing.T, s Subject) {
	w := newWorld(t, s)
	ctx := context.Background()
	a, b := w.process(core.WithTTL(long)).pair, w.process(core.WithTTL(long)).pair
	for name, sides := range map[string][2]Side{"lock": {a.Lock, b.Lock}, "rival": {a.Rival, b.Rival}} {
		first := w.must(sides[0].Strategy(name).TryLock(ctx))
		second, err := sides[1].Strategy(name).TryLock(ctx)
		if !sides[1].Shared {
			w.wantErr(err, core.ErrNotAcquired)
		} else if w.must(second, err).Owner() == first.Owner() {
			t.Errorf("both leases are of %s", first.Owner())
		}
	}
}

func namesAreIndependent(t *testing.T, s Subject) {
	w := newWorld(t, s)
	p := w.process()
	names := []string{"a", "{a}", "a:b", "{a}:b", "ä€", "with space\r\n"}
	if s.bringsTag() {
		names = append(names, emptyTags...)
	}
	for _, name := range names {
		l := p.lock(name)
		lease := w.must(l.TryLock(context.Background()))
		if lease.Name() != l.Name() || !p.pair.Lock.calls(name, l.Name()) {
			t.Errorf("the lock %q is named %q, its lease %q", name, l.Name(), lease.Name())
		}
	}
	w.held("{a}:b")
}

func tryLockDoesNotWait(t *testing.T, s Subject) {
	w := newWorld(t, s)
	lease := w.must(w.process().lock("name", core.WithTTL(long)).Lock(context.Background()))
	p := w.process()
	_, err := p.rival("name").TryLock(context.Background(), core.WithWait(within))
	var refused *core.NotAcquiredError
	w.wantErr(err, core.ErrNotAcquired)
	if !asError(err, &refused) {
		t.Fatalf("error %v is no NotAcquiredError", err)
	}
	if !p.pair.Rival.calls("name", refused.Name) || refused.RetryAfter <= 0 || refused.RetryAfter > long {
		t.Errorf("refused with %+v", refused)
	}
	w.unlock(lease)
	w.free("name")
}

func unlockTouchesOnlyOwnLease(t *testing.T, s Subject) {
	w := newWorld(t, s)
	ctx := context.Background()
	late := w.must(w.process().lock("name").Lock(ctx, core.WithFixedTTL(short)))
	next := w.must(w.process().rival("name").Lock(ctx, core.WithTTL(long))) // waits until late has expired
	w.wantErr(late.Unlock(ctx), core.ErrNotHeld)
	w.wantErr(late.Extend(ctx, long), core.ErrNotHeld)
	w.heldByRival("name")
	w.wantNewer(next, late)
	w.unlock(next)
	w.free("name")
}
