package core_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// TestLeasesSurviveAMigration renews leases of all strategies while their slot moves to another master, which takes
// longer than their TTL: with all keys still here, with the locks there and the rest here, and with all there.
func TestLeasesSurviveAMigration(t *testing.T) {
	t.Parallel()
	const ttl = 2 * time.Second
	t.Run("plain", func(t *testing.T) {
		t.Parallel()
		surviveMigration(t, redistest.StartCluster(t, 2), ttl)
	})
	t.Run("acknowledged", func(t *testing.T) {
		t.Parallel()
		surviveMigration(t, redistest.StartCluster(t, 2, redistest.Replicas(1)), 2*ttl,
			core.WithReplicaAck(1, time.Second))
	})
}

func surviveMigration(t *testing.T, cluster *redistest.Cluster, ttl time.Duration, opts ...core.Option) {
	t.Helper()
	locks := newClient(t, cluster.Client(), append(opts, core.WithTTL(ttl))...)
	var exclusive, shared []*core.Lease
	var moved []string
	for kind, lock := range strategies(locks) {
		name := "{m}:" + kind
		lease := mustLock(t, lock(name))
		if kind == "Read" || kind == "FairRead" {
			shared = append(shared, lease)
			continue
		}
		exclusive = append(exclusive, lease)
		moved = append(moved, "lock:"+name)
		if kind == "Write" { // and reads under it
			mustLockWith(t, lease.Context(), locks.Read(name), core.WithFixedTTL(long))
		}
	}
	slot := cluster.Slot("lock:{m}")
	to := cluster.Masters[0]
	if cluster.Owner(slot) == to {
		to = cluster.Masters[1]
	}
	m := cluster.BeginMigration(slot, to)
	awaitRenewed(t, append(exclusive, shared...), 2*ttl)
	m.MoveKeys(moved...)
	awaitRenewed(t, append(exclusive, shared...), 2*ttl)
	m.MoveKeys()
	awaitRenewed(t, append(exclusive, shared...), 2*ttl)
	m.End()
	awaitRenewed(t, append(exclusive, shared...), 2*ttl)
	for _, l := range append(exclusive, shared...) {
		if l.Context().Err() != nil {
			t.Errorf("%s was lost: %v", l.Name(), context.Cause(l.Context()))
		}
		unlock(t, l)
	}
}

// TestMigrationIsWaitedFor: while a slot moves, nothing can be locked or unlocked there, for as long as that takes. All
// who have time wait for it.
func TestMigrationIsWaitedFor(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	cluster := redistest.StartCluster(t, 2)
	locks, other := newClient(t, cluster.Client(), core.WithTTL(long)), newClient(t, cluster.Client(), core.WithTTL(long))
	slot := cluster.Slot("lock:{m}")
	to := cluster.Masters[0]
	if cluster.Owner(slot) == to {
		to = cluster.Masters[1]
	}
	held := make(map[string]*core.Lease)
	waiting := make(map[string]<-chan *core.Lease)
	for kind, lock := range strategies(locks) {
		held[kind] = mustLock(t, lock("{m}:"+kind))
		if kind == "Mutex" || kind == "Fair" || kind == "Write" {
			waiting[kind] = leaseLater(t, strategies(other)[kind]("{m}:"+kind))
		}
	}
	m := cluster.BeginMigration(slot, to)
	late := leaseLater(t, locks.Mutex("{m}:free"))
	joint := leaseLater(t, core.Multi(locks.Mutex("{m}:joint"), other.Fair("elsewhere")))
	_, err := locks.Mutex("{m}:free").TryLock(ctx)
	wantErr(t, err, core.ErrUnavailable)
	for kind, lease := range held {
		short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		if err := lease.Unlock(short); err == nil || errors.Is(err, core.ErrNotHeld) {
			t.Errorf("%s: unlocked while the slot moves: %v", kind, err)
		}
		cancel()
	}
	// Longer than a request endures an outage, and than a place in line lasts.
	_, err = locks.Mutex("{m}:free").Lock(ctx, core.WithWait(6*time.Second))
	wantErr(t, err, core.ErrUnavailable)
	m.End()
	for kind, next := range waiting {
		lease := awaitLease(t, next)
		if lease.Token() <= held[kind].Token() {
			t.Errorf("%s: token %d came after %d", kind, lease.Token(), held[kind].Token())
		}
		unlock(t, lease)
	}
	unlock(t, awaitLease(t, late))
	unlock(t, awaitLease(t, joint))
	for kind, lock := range strategies(other) { // what was unlocked meanwhile is unlocked now
		lease := awaitLease(t, leaseLater(t, lock("{m}:"+kind)))
		unlock(t, lease)
	}
}
