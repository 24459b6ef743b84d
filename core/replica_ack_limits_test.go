package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
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
		wantErr(t, err, core.ErrInvalidOption)
		locks := newClient(t, rdb)
		_, err = locks.Mutex("name", option).TryLock(ctx)
		wantErr(t, err, core.ErrInvalidOption)
		_, err = core.Multi(locks.Mutex("name"), locks.Fair("other")).TryLock(ctx, option)
		wantErr(t, err, core.ErrInvalidOption)
	}
	locks := newClient(t, rdb, core.WithReplicaAck(1, time.Second))
	_, err := locks.Mutex("name").TryLock(ctx, core.WithTTL(time.Second))
	wantErr(t, err, core.ErrInvalidOption)
	wantErr(t, core.CheckOptions(core.WithReplicaAck(0, time.Second)), core.ErrInvalidOption)
	if err := core.CheckOptions(core.WithReplicaAck(1, time.Second)); err != nil {
		t.Error(err)
	}

	_, err = core.New(struct{ redis.UniversalClient }{rdb}, core.WithReplicaAck(1, time.Second))
	wantErr(t, err, core.ErrInvalidOption)
	_, err = newClient(t, struct{ redis.UniversalClient }{rdb}).Mutex("name").TryLock(ctx, core.WithReplicaAck(1, time.Second))
	wantErr(t, err, core.ErrInvalidOption)
}

// TestEachCountsItsOwnReplicas: calls that share a WAIT may want more or less than the others.
func TestEachCountsItsOwnReplicas(t *testing.T) {
	t.Parallel()
	p := startReplicated(t)
	locks := newClient(t, p.master.Client(), core.WithTTL(long))
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			wanted := 1 + i%2
			lock := locks.Mutex(fmt.Sprint("name", i), core.WithReplicaAck(wanted, 5*soon))
			if wanted == 1 {
				unlock(t, mustLock(t, lock))
				return
			}
			_, err := lock.TryLock(context.Background())
			wantNotReplicated(t, err, 1, 2)
		})
	}
	all.Wait()
	joint := core.Multi(locks.Mutex("a", core.WithReplicaAck(1, soon)), locks.Mutex("b", core.WithReplicaAck(2, soon)))
	_, err := joint.TryLock(context.Background())
	wantNotReplicated(t, err, 1, 2)
	awaitTidy(t, p.master.Client())
}

// TestRefusalsNeedNoReplica: that a lock is held is true also if no replica has heard of it.
func TestRefusalsNeedNoReplica(t *testing.T) {
	t.Parallel()
	p := startReplicated(t)
	locks := newClient(t, p.master.Client(), core.WithTTL(long))
	mustLock(t, locks.Mutex("name"))
	p.link.Drop(testkit.Both)
	_, err := locks.Mutex("name").TryLock(context.Background(), core.WithReplicaAck(1, soon))
	wantErr(t, err, core.ErrNotAcquired)
	if errors.Is(err, core.ErrUnavailable) {
		t.Error(err)
	}
}

// TestLossNeedsNoReplica: a renewal that finds the lock gone ends the lease, whatever replicas say.
func TestLossNeedsNoReplica(t *testing.T) {
	t.Parallel()
	p := startReplicated(t)
	locks := newClient(t, p.master.Client(), core.WithTTL(long), core.WithReplicaAck(1, 5*soon))
	lease := mustLock(t, locks.Mutex("name"))
	p.link.Drop(testkit.Both)
	if forced, err := locks.ForceUnlock(context.Background(), "name"); !forced || err != nil {
		t.Errorf("ForceUnlock = %v, %v", forced, err)
	}
	wantErr(t, lease.Extend(context.Background(), long), core.ErrNotHeld)
	wantErr(t, context.Cause(lease.Context()), core.ErrLeaseLost)
}

// TestDemotedMasterAcknowledgesNothing: the master becomes a replica while it waits for its own.
func TestDemotedMasterAcknowledgesNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := startReplicated(t)
	other := testkit.Start(t, testkit.TCP())
	locks := newClient(t, p.master.Client(), core.WithTTL(long))
	unlock(t, mustLock(t, locks.Mutex("name"))) // the script is known
	p.link.Hold(testkit.ToServer)
	done := make(chan error, 1)
	go func() {
		_, err := locks.Mutex("name").TryLock(ctx, core.WithReplicaAck(1, time.Minute))
		done <- err
	}()
	testkit.Eventually(t, within, "the call to wait", func() bool {
		return p.master.Info("clients", "blocked_clients") != "0"
	})
	p.master.Client().ReplicaOf(ctx, "127.0.0.1", fmt.Sprint(other.Port()))
	wantNotReplicated(t, receive(t, done), 0, 1)
	p.master.Client().ReplicaOf(ctx, "NO", "ONE")
	awaitFree(t, locks, "name")
}

// TestWaitMayBeForbidden: to a user without the right to WAIT, the grant is no outage, and it is taken back.
func TestWaitMayBeForbidden(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := newClient(t, restricted(t, server, "+@all", "-wait"), core.WithTTL(long))
	_, err := locks.Mutex("name").Lock(context.Background(), core.WithReplicaAck(1, soon))
	if err == nil || !redis.HasErrorPrefix(err, "NOPERM") && !errors.As(err, new(redis.Error)) ||
		errors.Is(err, core.ErrUnavailable) {
		t.Errorf("Lock = %v", err)
	}
	awaitFree(t, locks, "name")
}

// TestQueueOfDifferentWishes: callers behind one that wants a replica, and gets none, but that want none themselves.
func TestQueueOfDifferentWishes(t *testing.T) {
	t.Parallel()
	p := startReplicated(t)
	locks := newClient(t, p.master.Client(), core.WithTTL(long))
	held := mustLock(t, locks.Mutex("name"))
	p.link.Drop(testkit.Both)
	first := make(chan error, 1)
	go func() {
		_, err := locks.Mutex("name").Lock(context.Background(), core.WithReplicaAck(1, soon))
		first <- err
	}()
	awaitListeners(t, locks, "name", 1)
	second := lockLater(locks.Mutex("name"))
	unlock(t, held)
	wantErr(t, receive(t, first), core.ErrNotReplicated)
	if err := receive(t, second); err != nil {
		t.Errorf("who wants no replica: %v", err)
	}
}
