package sentinel_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestReplicaAckIsWaitedFor takes, enters, extends and frees each kind of lock with the option, and without it, when
// nothing more than before may be sent.
func TestReplicaAckIsWaitedFor(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, asked := range map[string]bool{"asked": true, "not asked": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := coretest.StartReplicated(t)
			opts := []core.Option{core.WithTTL(coretest.Long)}
			if asked {
				opts = append(opts, core.WithReplicaAck(1, coretest.Ample))
			}
			locks := coretest.NewClient(t, p.Master.Client(), opts...)
			before := p.Waits()
			var want int64
			for kind, lock := range coretest.Locks(locks) {
				lease := coretest.MustLock(t, lock)
				inner := coretest.MustLockWith(t, lease.Context(), lock)
				if err := inner.Extend(ctx, 2*coretest.Long); err != nil {
					t.Errorf("%s: extend: %v", kind, err)
				}
				if !lease.ValidUntil().Before(inner.ValidUntil()) {
					t.Errorf("%s: Extend did not count", kind)
				}
				coretest.Unlock(t, inner)
				coretest.Unlock(t, lease)
				want += 3
			}
			waited := p.Waits() - before
			if !asked && waited != 0 || asked && waited < want {
				t.Errorf("asked to wait %d times for %d grants and extensions", waited, want)
			}
		})
	}
}

// TestUnacknowledgedGrantsAreTakenBack: without the replica no kind of lock is granted, and nothing stays behind. Many
// try at once, over several connections, and over such as have heard an acknowledgement before.
func TestUnacknowledgedGrantsAreTakenBack(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := coretest.StartReplicated(t)
	rdb := p.Master.Client()
	coretest.WarmPool(t, rdb)
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithReplicaAck(1, coretest.Soon))
	for _, lock := range coretest.Locks(locks) {
		coretest.Unlock(t, coretest.MustLock(t, lock, core.WithReplicaAck(1, coretest.Ample)))
	}
	p.AwaitRest(t) // to a connection that writes nothing from now on, WAIT says yes
	p.Link.Drop(testkit.Both)
	var all sync.WaitGroup
	for kind, lock := range coretest.Locks(locks) {
		all.Go(func() {
			lease, err := lock.TryLock(ctx)
			if lease != nil {
				t.Errorf("%s was granted", kind)
			}
			coretest.WantNotReplicated(t, err, 0, 1)
		})
	}
	for i := range 100 {
		all.Go(func() {
			_, err := locks.Mutex(fmt.Sprint("name", i)).TryLock(ctx)
			coretest.WantNotReplicated(t, err, 0, 1)
		})
	}
	all.Wait()
	coretest.AwaitTidy(t, rdb)
}

// TestUnacknowledgedReentry: the inner lease is refused, the outer one stays.
func TestUnacknowledgedReentry(t *testing.T) {
	t.Parallel()
	p := coretest.StartReplicated(t)
	locks := coretest.NewClient(t, p.Master.Client(), core.WithTTL(coretest.Long), core.WithReplicaAck(1, coretest.Soon))
	lease := coretest.MustLock(t, locks.Mutex("name"), core.WithReplicaAck(1, coretest.Ample))
	p.Link.Drop(testkit.Both)
	_, err := locks.Mutex("name").TryLock(lease.Context())
	coretest.WantNotReplicated(t, err, 0, 1)
	testkit.Eventually(t, coretest.Within, "the inner hold to be taken back", func() bool {
		info, err := locks.Inspect(context.Background(), "name")
		return err == nil && len(info.Holders) == 1 && info.Holders[0].Holds == 1
	})
	coretest.Unlock(t, lease)
}

// TestLockWaitsForReplicas: Lock asks again while the replica is unreachable, until its context ends, or the replica is back.
func TestLockWaitsForReplicas(t *testing.T) {
	t.Parallel()
	p := coretest.StartReplicated(t)
	locks := coretest.NewClient(t, p.Master.Client(), core.WithTTL(coretest.Long), core.WithReplicaAck(1, 2*coretest.Soon))
	p.Link.Hold(testkit.ToServer) // what the replica acknowledges
	before := p.Waits()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	given := make(chan error, 1)
	go func() {
		_, err := locks.Mutex("given up").Lock(ctx)
		given <- err
	}()
	waiting := map[string]<-chan error{}
	for kind, lock := range coretest.Locks(locks) {
		waiting[kind] = coretest.LockLater(lock)
	}
	testkit.Eventually(t, coretest.Within, "some tries", func() bool { return p.Waits() > before+3 })
	cancel()
	err := coretest.Receive(t, given)
	coretest.WantErr(t, err, context.Canceled)
	coretest.WantErr(t, err, core.ErrUnavailable)
	p.Link.Deliver()
	for kind, done := range waiting {
		if err := coretest.Receive(t, done); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	coretest.AwaitTidy(t, p.Master.Client())
}

// TestHandoverIsAcknowledged: an unlock grants the lock to the first in line and notifies it. With the option,
// the grant counts only if the replica acknowledges it.
func TestHandoverIsAcknowledged(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"Fair", "Read", "Write"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p := coretest.StartReplicated(t)
			locks := coretest.NewClient(t, p.Master.Client(), core.WithTTL(coretest.Long))
			held := coretest.MustLock(t, locks.Write("name"))
			waiting := coretest.LeaseLater(t, coretest.Strategies(locks)[kind]("name"), core.WithReplicaAck(1, 5*coretest.Soon))
			coretest.AwaitQueue(t, locks, "name", 1)
			p.Link.Hold(testkit.ToServer) // what the replica acknowledges
			before := p.Waits()
			coretest.Unlock(t, held)
			testkit.Eventually(t, coretest.Within, "the waiter to ask", func() bool { return p.Waits() > before+1 })
			info, err := locks.Inspect(context.Background(), "name")
			if err != nil || len(info.Holders) != 1 {
				t.Errorf("holders %+v, %v", info.Holders, err)
			}
			select {
			case <-waiting:
				t.Error("the lock was handed over without an acknowledgement")
			default:
			}
			p.Link.Deliver()
			coretest.Unlock(t, coretest.AwaitLease(t, waiting))
		})
	}
}

// TestUnacknowledgedRenewalsDoNotCount: while the replica is unreachable, ValidUntil stays where it is, and the lease ends
// there, though the master continues renewing it. Some renewals of a hold beside leases of its owner are made in part.
func TestUnacknowledgedRenewalsDoNotCount(t *testing.T) {
	t.Parallel()
	for name, inside := range map[string]func(*core.Client) *core.Lock{
		"alone":           nil,
		"beside a read":   func(c *core.Client) *core.Lock { return c.Read("name") },
		"beside a permit": func(c *core.Client) *core.Lock { return c.Semaphore("name", 3) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			endAtTheKnownExpiry(t, inside)
		})
	}
}

// endAtTheKnownExpiry holds a mutex, with a lease inside it if there is one, until its replica has been away for a TTL.
func endAtTheKnownExpiry(t *testing.T, inside func(*core.Client) *core.Lock) {
	t.Helper()
	p := coretest.StartReplicated(t)
	var mu sync.Mutex
	var failed, renewed int
	locks := coretest.NewClient(t, p.Master.Client(), core.WithTTL(6*time.Second), core.WithReplicaAck(1, time.Second),
		core.WithHooks(core.Hooks{Renewed: func(_ context.Context, r core.Renewed) {
			mu.Lock()
			defer mu.Unlock()
			if r.Err == nil {
				renewed++
			} else if failed++; !errors.Is(r.Err, core.ErrNotReplicated) {
				t.Errorf("renewal: %v", r.Err)
			}
		}}))
	lease := coretest.MustLock(t, locks.Mutex("name"))
	if inside != nil {
		coretest.MustLockWith(t, lease.Context(), inside(locks), core.WithFixedTTL(8*time.Second))
	}
	testkit.Eventually(t, coretest.Within, "the script to be known", func() bool {
		return lease.Extend(context.Background(), 6*time.Second) == nil
	})
	p.Link.Drop(testkit.Both)
	mu.Lock()
	known := renewed
	mu.Unlock()
	until := lease.ValidUntil()
	coretest.WantNotReplicated(t, lease.Extend(context.Background(), coretest.Long), 0, 1)
	coretest.WaitFor(t, lease.Done(), "the lease to end")
	coretest.WantErr(t, context.Cause(lease.Context()), core.ErrLeaseLost)
	mu.Lock()
	defer mu.Unlock()
	if moved := lease.ValidUntil().Sub(until); renewed == known && moved > 20*time.Millisecond { // two clocks are read
		t.Errorf("ValidUntil moved by %v", moved)
	}
	if failed == 0 || renewed > known+1 { // one may have been on its way when the link was cut
		t.Errorf("%d renewals failed, %d succeeded without the replica", failed, renewed-known)
	}
	awaitFree(t, coretest.NewClient(t, p.Master.Client()), "name")
}
