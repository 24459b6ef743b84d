package sentinel_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestReplicaAckIsChecked: every value that cannot work is refused, where it is set or where it meets the others.
func TestReplicaAckIsChecked(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	for _, option := range []core.LockOption{
		core.WithReplicaAck(0, time.Second),
		core.WithReplicaAck(-1, time.Second),
		core.WithReplicaAck(1, 0),
		core.WithReplicaAck(1, -time.Second),
		core.WithReplicaAck(1, time.Millisecond/2),
		core.WithReplicaAck(1, 30*time.Second), // the TTL
	} {
		_, err := core.New(rdb, option)
		coretest.WantErr(t, err, core.ErrInvalidOption)
		locks := coretest.NewClient(t, rdb)
		_, err = locks.Mutex("name", option).TryLock(ctx)
		coretest.WantErr(t, err, core.ErrInvalidOption)
		_, err = core.Multi(locks.Mutex("name"), locks.Fair("other")).TryLock(ctx, option)
		coretest.WantErr(t, err, core.ErrInvalidOption)
	}
	locks := coretest.NewClient(t, rdb, core.WithReplicaAck(1, time.Second))
	_, err := locks.Mutex("name").TryLock(ctx, core.WithTTL(time.Second))
	coretest.WantErr(t, err, core.ErrInvalidOption)
	coretest.WantErr(t, seal.CheckOptions(core.WithReplicaAck(0, time.Second)), core.ErrInvalidOption)
	if err := seal.CheckOptions(core.WithReplicaAck(1, time.Second)); err != nil {
		t.Error(err)
	}

	_, err = core.New(struct{ redis.UniversalClient }{rdb}, core.WithReplicaAck(1, time.Second))
	coretest.WantErr(t, err, core.ErrInvalidOption)
	_, err = coretest.NewClient(t, struct{ redis.UniversalClient }{rdb}).Mutex("name").TryLock(ctx, core.WithReplicaAck(1, time.Second))
	coretest.WantErr(t, err, core.ErrInvalidOption)
}

// TestEachCountsItsOwnReplicas: calls that share a WAIT may want more or less than the others.
func TestEachCountsItsOwnReplicas(t *testing.T) {
	t.Parallel()
	p := coretest.StartReplicated(t)
	locks := coretest.NewClient(t, p.Master.Client(), core.WithTTL(coretest.Long))
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			wanted := 1 + i%2
			lock := locks.Mutex(fmt.Sprint("name", i), core.WithReplicaAck(wanted, 5*coretest.Soon))
			if wanted == 1 {
				coretest.Unlock(t, coretest.MustLock(t, lock))
				return
			}
			_, err := lock.TryLock(context.Background())
			coretest.WantNotReplicated(t, err, 1, 2)
		})
	}
	all.Wait()
	joint := core.Multi(locks.Mutex("a", core.WithReplicaAck(1, coretest.Soon)), locks.Mutex("b", core.WithReplicaAck(2, coretest.Soon)))
	_, err := joint.TryLock(context.Background())
	coretest.WantNotReplicated(t, err, 1, 2)
	coretest.AwaitTidy(t, p.Master.Client())
}

// TestRefusalsNeedNoReplica: that a lock is held is true also if no replica has heard of it.
func TestRefusalsNeedNoReplica(t *testing.T) {
	t.Parallel()
	p := coretest.StartReplicated(t)
	locks := coretest.NewClient(t, p.Master.Client(), core.WithTTL(coretest.Long))
	coretest.MustLock(t, locks.Mutex("name"))
	p.Link.Drop(testkit.Both)
	_, err := locks.Mutex("name").TryLock(context.Background(), core.WithReplicaAck(1, coretest.Soon))
	coretest.WantErr(t, err, core.ErrNotAcquired)
	if errors.Is(err, core.ErrUnavailable) {
		t.Error(err)
	}
}

// TestLossNeedsNoReplica: a renewal that finds the lock gone ends the lease, whatever replicas say.
func TestLossNeedsNoReplica(t *testing.T) {
	t.Parallel()
	p := coretest.StartReplicated(t)
	locks := coretest.NewClient(t, p.Master.Client(), core.WithTTL(coretest.Long), core.WithReplicaAck(1, 5*coretest.Soon))
	lease := coretest.MustLock(t, locks.Mutex("name"))
	p.Link.Drop(testkit.Both)
	if forced, err := locks.ForceUnlock(context.Background(), "name"); !forced || err != nil {
		t.Errorf("ForceUnlock = %v, %v", forced, err)
	}
	coretest.WantErr(t, lease.Extend(context.Background(), coretest.Long), core.ErrNotHeld)
	coretest.WantErr(t, context.Cause(lease.Context()), core.ErrLeaseLost)
}

// TestDemotedMasterAcknowledgesNothing: the master becomes a replica while it waits for its own.
func TestDemotedMasterAcknowledgesNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := coretest.StartReplicated(t)
	other := testkit.Start(t, testkit.TCP())
	locks := coretest.NewClient(t, p.Master.Client(), core.WithTTL(coretest.Long))
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("name"))) // the script is known
	p.Link.Hold(testkit.ToServer)
	done := make(chan error, 1)
	go func() {
		_, err := locks.Mutex("name").TryLock(ctx, core.WithReplicaAck(1, time.Minute))
		done <- err
	}()
	testkit.Eventually(t, coretest.Within, "the call to wait", func() bool {
		return p.Master.Info("clients", "blocked_clients") != "0"
	})
	p.Master.Client().ReplicaOf(ctx, "127.0.0.1", fmt.Sprint(other.Port()))
	coretest.WantNotReplicated(t, coretest.Receive(t, done), 0, 1)
	p.Master.Client().ReplicaOf(ctx, "NO", "ONE")
	awaitFree(t, locks, "name")
}

// TestWaitMayBeForbidden: to a user without the right to WAIT, the grant is no outage, and it is taken back.
func TestWaitMayBeForbidden(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := coretest.NewClient(t, coretest.Restricted(t, server, "+@all", "-wait"), core.WithTTL(coretest.Long))
	_, err := locks.Mutex("name").Lock(context.Background(), core.WithReplicaAck(1, coretest.Soon))
	if err == nil || !redis.HasErrorPrefix(err, "NOPERM") && !errors.As(err, new(redis.Error)) ||
		errors.Is(err, core.ErrUnavailable) {
		t.Errorf("Lock = %v", err)
	}
	awaitFree(t, locks, "name")
}

// TestQueueOfDifferentWishes: callers behind one that wants a replica, and gets none, but that want none themselves.
func TestQueueOfDifferentWishes(t *testing.T) {
	t.Parallel()
	p := coretest.StartReplicated(t)
	locks := coretest.NewClient(t, p.Master.Client(), core.WithTTL(coretest.Long))
	held := coretest.MustLock(t, locks.Mutex("name"))
	p.Link.Drop(testkit.Both)
	first := make(chan error, 1)
	go func() {
		_, err := locks.Mutex("name").Lock(context.Background(), core.WithReplicaAck(1, coretest.Soon))
		first <- err
	}()
	coretest.AwaitListeners(t, locks, "name", 1)
	second := coretest.LockLater(locks.Mutex("name"))
	coretest.Unlock(t, held)
	coretest.WantErr(t, coretest.Receive(t, first), core.ErrNotReplicated)
	if err := coretest.Receive(t, second); err != nil {
		t.Errorf("who wants no replica: %v", err)
	}
}

// awaitFree returns once no owner holds a lock of that name.
func awaitFree(t testing.TB, locks *core.Client, name string) {
	t.Helper()
	testkit.Eventually(t, coretest.Within, name+" to be free", func() bool {
		info, err := locks.Inspect(context.Background(), name)
		return err == nil && info.Mode == ""
	})
}
