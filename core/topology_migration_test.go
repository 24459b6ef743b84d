package core_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestLeasesSurviveAMigration renews leases of all strategies while their slot moves to another master, which takes
// longer than their TTL: with all keys still here, with the locks there and the rest here, and with all there.
func TestLeasesSurviveAMigration(t *testing.T) {
	t.Parallel()
	const ttl = 3 * time.Second
	t.Run("plain", func(t *testing.T) {
		t.Parallel()
		surviveMigration(t, testkit.StartCluster(t, 2), ttl)
	})
	t.Run("acknowledged", func(t *testing.T) {
		t.Parallel()
		surviveMigration(t, testkit.StartCluster(t, 2, testkit.Replicas(1)), 2*ttl,
			core.WithReplicaAck(1, time.Second))
	})
}

func surviveMigration(t *testing.T, cluster *testkit.Cluster, ttl time.Duration, opts ...core.Option) {
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
	m := cluster.BeginMigration(slot, servedElsewhere(cluster, slot))
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

// TestContentionThroughMigrations moves a slot to and fro while its locks are contended for, alone and together with
// others.
func TestContentionThroughMigrations(t *testing.T) {
	t.Parallel()
	cluster := testkit.StartCluster(t, 3)
	var locks []core.Locker
	names := []string{"{m}:mutex", "{m}:fair", "{m}:write", "elsewhere+{m}:joint"}
	var clients []*core.Client
	for range 3 {
		c := newClient(t, cluster.Client(), core.WithTTL(10*time.Second))
		clients = append(clients, c)
		locks = append(locks, c.Mutex(names[0]), c.Fair(names[1]), c.Write(names[2]),
			core.Multi(c.Mutex("elsewhere"), c.Mutex("{m}:joint")))
	}
	slot := cluster.Slot("{m}")
	told := queueUpOther(t, cluster, clients[0], clients[1], "{m}:line")
	r := contend(t, locks...)
	for i := range 4 {
		awaitEpochs(t, cluster)
		m := cluster.BeginMigration(slot, servedElsewhere(cluster, slot))
		if i%2 == 0 {
			time.Sleep(200 * time.Millisecond) // that some of the commands arrive meanwhile
			m.MoveKeys()
		}
		m.End()
		before := r.least(names)
		testkit.Eventually(t, within, "all locks to be taken again", func() bool { return r.least(names) > before+2 })
	}
	r.check(t)
	told()
}

// queueUpOther lets some of one client stand in line behind the other. The function returned lets them have the lock, one
// after the other, and counts the commands of the second half: a waiter that has to ask for what it was not told needs one
// more. The first half is not counted, because all waiters ask once when their client hears that it is subscribed again,
// which may be some time after Redis has subscribed it.
func queueUpOther(t testing.TB, cluster *testkit.Cluster, a, b *core.Client, name string) (told func()) {
	t.Helper()
	const waiters = 20
	held := mustLock(t, a.Fair(name))
	var waiting []<-chan *core.Lease
	for i := range waiters {
		waiting = append(waiting, leaseLater(t, b.Fair(name)))
		awaitQueue(t, a, name, i+1)
	}
	return func() {
		t.Helper()
		awaitQueue(t, a, name, waiters)
		ctx, owner := context.Background(), cluster.Owner(cluster.Slot("lock:"+name)).Client()
		testkit.Eventually(t, within, "the waiters to listen", func() bool {
			channel := "redisson_lock__channel:lock:" + name + ":*"
			sharded, plain := owner.PubSubShardChannels(ctx, channel).Val(), owner.PubSubChannels(ctx, channel).Val()
			return len(sharded)+len(plain) == 1
		})
		unlock(t, held)
		for _, next := range waiting[:waiters/2] {
			unlock(t, awaitLease(t, next))
		}
		before, began := calls(cluster, "evalsha"), time.Now()
		for _, next := range waiting[waiters/2:] {
			unlock(t, awaitLease(t, next))
		}
		if time.Since(began) > 2*time.Second {
			return // on so slow a machine, waiters ask because messages come too late to be accepted
		}
		// Signs of life come on top: one per second and client.
		most := int64(waiters/2*3/2 + 2*(2+2))
		if sent := calls(cluster, "evalsha") - before; sent > most {
			t.Errorf("%d commands for %d handoffs", sent, waiters/2)
		}
	}
}

// TestMigrationIsWaitedFor: while a slot moves, nothing can be locked or unlocked there, for as long as that takes. All
// that have time wait for it.
func TestMigrationIsWaitedFor(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	cluster := testkit.StartCluster(t, 2)
	locks, other := newClient(t, cluster.Client(), core.WithTTL(long)), newClient(t, cluster.Client(), core.WithTTL(long))
	slot := cluster.Slot("lock:{m}")
	held := make(map[string]*core.Lease)
	waiting := make(map[string]<-chan *core.Lease)
	for kind, lock := range strategies(locks) {
		held[kind] = mustLock(t, lock("{m}:"+kind))
		if kind == "Mutex" || kind == "Fair" || kind == "Write" {
			waiting[kind] = leaseLater(t, strategies(other)[kind]("{m}:"+kind))
		}
	}
	// A Multi that holds a lock there already, and has yet to make it and the other of one token.
	held["elsewhere"] = mustLock(t, other.Mutex("elsewhere"))
	joint := leaseLater(t, core.Multi(locks.Mutex("a{m}"), locks.Mutex("elsewhere")))
	awaitListeners(t, locks, "elsewhere", 1)
	m := cluster.BeginMigration(slot, servedElsewhere(cluster, slot))
	unlock(t, held["elsewhere"])
	delete(held, "elsewhere")
	late := leaseLater(t, locks.Mutex("{m}:free"))
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
