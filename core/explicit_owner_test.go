package core_test

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// TestExplicitOwnerEntersFromAnotherProcess: an owner that WithOwner names gets the lock in one process, while calls for
// it wait in another one, behind other callers. They enter, though nothing is released.
func TestExplicitOwnerEntersFromAnotherProcess(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	nodes := startMasters(t, 3)
	for _, name := range []string{"Mutex", "Fair", "Write", "FairWrite", "Redlock"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			waits := make(chan struct{}, 10)
			process := func() core.Locker {
				hooks := core.WithHooks(core.Hooks{Wait: func(context.Context, core.Wait) { waits <- struct{}{} }})
				if name == "Redlock" {
					return nodes.redlock(t, hooks).Mutex("name")
				}
				return strategies(newClient(t, server.Client(), hooks))[name](name)
			}
			wait := func(l core.Locker, opts ...core.LockOption) <-chan *core.Lease {
				t.Helper()
				got := make(chan *core.Lease, 1)
				go func() {
					lease, err := l.Lock(context.Background(), append(opts, core.WithTTL(long), core.WithWait(2*within))...)
					if err != nil {
						t.Errorf("lock: %v", err)
					}
					got <- lease
				}()
				waitFor(t, waits, "the caller to wait")
				return got
			}
			holder := mustLock(t, process(), core.WithTTL(long))
			one, other := process(), process()
			first := wait(one, core.WithOwner("x"))
			before := wait(other)
			second, third := wait(other, core.WithOwner("x")), wait(other, core.WithOwner("x"))
			unlock(t, holder)
			var held []*core.Lease
			for _, waiting := range []<-chan *core.Lease{first, second, third} {
				select {
				case lease := <-waiting:
					held = append(held, lease)
				case lease := <-before: // it was quicker, which between processes it may be with a Mutex
					if lease != nil {
						unlock(t, lease)
					}
					before = nil
					held = append(held, <-waiting)
				}
			}
			for _, lease := range held {
				if lease == nil {
					t.FailNow()
				}
				unlock(t, lease)
			}
			if before != nil {
				if lease := <-before; lease != nil {
					unlock(t, lease)
				}
			}
		})
	}
}

// TestExplicitOwnerIsToldOfItsShare: an owner waits to write in one process, and gets a share in another one. It would
// wait for itself, so it is told.
func TestExplicitOwnerIsToldOfItsShare(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	one, other := newClient(t, server.Client()), newClient(t, server.Client())
	holder := mustLock(t, one.Write("name"), core.WithTTL(long))
	queued := func(n int) func() bool {
		return func() bool {
			info, err := one.Inspect(ctx, "name")
			return err == nil && len(info.Queue) == n
		}
	}
	reading := make(chan *core.Lease, 1)
	go func() {
		lease, err := one.Read("name").Lock(ctx, core.WithOwner("x"), core.WithTTL(long))
		if err != nil {
			t.Errorf("read: %v", err)
		}
		reading <- lease
	}()
	redistest.Eventually(t, within, "a reader to wait", queued(1))
	writing := make(chan error, 1)
	go func() {
		_, err := other.Write("name").Lock(ctx, core.WithOwner("x"))
		writing <- err
	}()
	redistest.Eventually(t, within, "a writer to wait", queued(2))
	unlock(t, holder)
	wantErr(t, receive(t, writing), core.ErrUpgrade)
	unlock(t, <-reading)
}
