package conformance

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/core"
)

var exclusionTests = map[string]func(*testing.T, Subject){
	"OneAtATime":                oneAtATime,
	"NamesAreIndependent":       namesAreIndependent,
	"TryLockDoesNotWait":        tryLockDoesNotWait,
	"UnlockTouchesOnlyOwnLease": unlockTouchesOnlyOwnLease,
}

// oneAtATime lets several processes with several goroutines each fight for one name.
func oneAtATime(t *testing.T, s Subject) {
	w := newWorld(t, s)
	const processes, goroutines, rounds = 3, 4, 15
	var inside, total atomic.Int32
	var last int64 // guarded by the lock under test
	var all sync.WaitGroup
	for range processes {
		p := w.process()
		for range goroutines {
			all.Go(func() {
				for range rounds {
					lease, err := p.lock("name").Lock(context.Background())
					if err != nil {
						t.Errorf("lock: %v", err)
						return
					}
					if n := inside.Add(1); n != 1 {
						t.Errorf("%d holders at once", n)
					}
					if lease.Token() <= last {
						t.Errorf("token %d after %d", lease.Token(), last)
					}
					last = lease.Token()
					total.Add(1)
					inside.Add(-1)
					w.unlock(lease)
				}
			})
		}
	}
	all.Wait()
	if got := total.Load(); got != processes*goroutines*rounds {
		t.Errorf("%d acquisitions, want %d", got, processes*goroutines*rounds)
	}
}

func namesAreIndependent(t *testing.T, s Subject) {
	w := newWorld(t, s)
	p := w.process()
	for _, name := range []string{"a", "{a}", "a:b", "{a}:b", "ä€", "with space\r\n"} {
		lease := w.must(p.lock(name).TryLock(context.Background()))
		if lease.Name() != name {
			t.Errorf("Name() = %q, want %q", lease.Name(), name)
		}
	}
	w.held("{a}:b")
}

func tryLockDoesNotWait(t *testing.T, s Subject) {
	w := newWorld(t, s)
	lease := w.must(w.process().lock("name", core.WithTTL(long)).Lock(context.Background()))
	_, err := w.process().lock("name").TryLock(context.Background(), core.WithWait(within))
	var refused *core.NotAcquiredError
	w.wantErr(err, core.ErrNotAcquired)
	if !asError(err, &refused) {
		t.Fatalf("error %v is no NotAcquiredError", err)
	}
	if refused.Name != "name" || refused.RetryAfter <= 0 || refused.RetryAfter > long {
		t.Errorf("refused with %+v", refused)
	}
	w.unlock(lease)
	w.free("name")
}

func unlockTouchesOnlyOwnLease(t *testing.T, s Subject) {
	w := newWorld(t, s)
	ctx := context.Background()
	late := w.must(w.process().lock("name").Lock(ctx, core.WithFixedTTL(short)))
	next := w.must(w.process().lock("name").Lock(ctx, core.WithTTL(long))) // waits until late has expired
	w.wantErr(late.Unlock(ctx), core.ErrNotHeld)
	w.wantErr(late.Extend(ctx, long), core.ErrNotHeld)
	w.held("name")
	if next.Token() <= late.Token() {
		t.Errorf("token %d after %d", next.Token(), late.Token())
	}
	w.unlock(next)
	w.free("name")
}
