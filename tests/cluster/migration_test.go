package cluster_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
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
	locks := coretest.NewClient(t, cluster.Client(), append(opts, core.WithTTL(ttl))...)
	var exclusive, shared []*core.Lease
	var moved []string
	for kind, lock := range coretest.Strategies(locks) {
		name := "{m}:" + kind
		lease := coretest.MustLock(t, lock(name))
		if kind == "Read" || kind == "FairRead" {
			shared = append(shared, lease)
			continue
		}
		exclusive = append(exclusive, lease)
		moved = append(moved, "lock:"+name)
		if kind == "Write" { // and reads under it
			coretest.MustLockWith(t, lease.Context(), locks.Read(name), core.WithFixedTTL(coretest.Long))
		}
	}
	slot := cluster.Slot("lock:{m}")
	m := cluster.BeginMigration(slot, coretest.ServedElsewhere(cluster, slot))
	coretest.AwaitRenewed(t, append(exclusive, shared...), ttl)
	m.MoveKeys(moved...)
	coretest.AwaitRenewed(t, append(exclusive, shared...), ttl)
	m.MoveKeys()
	coretest.AwaitRenewed(t, append(exclusive, shared...), ttl)
	m.End()
	coretest.AwaitRenewed(t, append(exclusive, shared...), ttl)
	for _, l := range append(exclusive, shared...) {
		if l.Context().Err() != nil {
			t.Errorf("%s was lost: %v", l.Name(), context.Cause(l.Context()))
		}
		coretest.Unlock(t, l)
	}
}

// TestContentionThroughMigrations moves a slot to and fro while its locks are contended for, alone and together with
// others.
func TestContentionThroughMigrations(t *testing.T) {
	t.Parallel()
	cluster := testkit.StartCluster(t, 3)
	var locks []*core.Lock
	names := []string{"{m}:mutex", "{m}:fair", "{m}:write", "elsewhere+{m}:joint"}
	var clients []*core.Client
	for range 3 {
		c := coretest.NewClient(t, cluster.Client(), core.WithTTL(10*time.Second))
		clients = append(clients, c)
		locks = append(locks, c.Mutex(names[0]), c.Fair(names[1]), c.Write(names[2]),
			core.Multi(c.Mutex("elsewhere"), c.Mutex("{m}:joint")))
	}
	slot := cluster.Slot("{m}")
	told := queueUpOther(t, cluster, clients[0], clients[1], "{m}:line")
	r := coretest.Contend(t, locks...)
	for i := range 4 {
		coretest.AwaitEpochs(t, cluster)
		m := cluster.BeginMigration(slot, coretest.ServedElsewhere(cluster, slot))
		if i%2 == 0 {
			time.Sleep(200 * time.Millisecond) // that some of the commands arrive meanwhile
			m.MoveKeys()
		}
		m.End()
		before := r.Least(names)
		testkit.Eventually(t, coretest.Within, "all locks to be taken again", func() bool { return r.Least(names) > before+2 })
	}
	r.Check(t)
	told()
}

// queueUpOther lets some of one client stand in line behind the other. The function returned lets them have the lock, one
// after the other, and counts the commands of the second half: a waiter that has to ask for what it was not told needs one
// more. The first half is not counted, because all waiters ask once when their client hears that it is subscribed again,
// which may be some time after Redis has subscribed it.
func queueUpOther(t testing.TB, cluster *testkit.Cluster, a, b *core.Client, name string) (told func()) {
	t.Helper()
	const waiters = 20
	held := coretest.MustLock(t, a.Fair(name))
	var waiting []<-chan *core.Lease
	for i := range waiters {
		waiting = append(waiting, coretest.LeaseLater(t, b.Fair(name)))
		coretest.AwaitQueue(t, a, name, i+1)
	}
	return func() {
		t.Helper()
		coretest.AwaitQueue(t, a, name, waiters)
		ctx, owner := context.Background(), cluster.Owner(cluster.Slot("lock:"+name)).Client()
		testkit.Eventually(t, coretest.Within, "the waiters to listen", func() bool {
			channel := "redisson_lock__channel:lock:" + name + ":*"
			sharded, plain := owner.PubSubShardChannels(ctx, channel).Val(), owner.PubSubChannels(ctx, channel).Val()
			return len(sharded)+len(plain) == 1
		})
		coretest.Unlock(t, held)
		for _, next := range waiting[:waiters/2] {
			coretest.Unlock(t, coretest.AwaitLease(t, next))
		}
		before, began := calls(cluster, "evalsha"), time.Now()
		for _, next := range waiting[waiters/2:] {
			coretest.Unlock(t, coretest.AwaitLease(t, next))
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

// TestMigrationIsWaitedFor: while a slot moves, nothing can be locked there, and only locks in the compact state can be unlocked, for
// as long as that takes. All that have time wait for it.
func TestMigrationIsWaitedFor(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	cluster := testkit.StartCluster(t, 2)
	locks, other := coretest.NewClient(t, cluster.Client(), core.WithTTL(coretest.Long)), coretest.NewClient(t, cluster.Client(), core.WithTTL(coretest.Long))
	slot := cluster.Slot("lock:{m}")
	held := make(map[string]*core.Lease)
	waiting := make(map[string]<-chan *core.Lease)
	for kind, lock := range coretest.Strategies(locks) {
		held[kind] = coretest.MustLock(t, lock("{m}:"+kind))
		if kind == "Mutex" || kind == "Fair" || kind == "Write" {
			waiting[kind] = coretest.LeaseLater(t, coretest.Strategies(other)[kind]("{m}:"+kind))
		}
	}
	// A Multi that holds a lock there already, and has yet to make it and the other of one token.
	held["elsewhere"] = coretest.MustLock(t, other.Mutex("elsewhere"))
	joint := coretest.LeaseLater(t, core.Multi(locks.Mutex("a{m}"), locks.Mutex("elsewhere")))
	coretest.AwaitListeners(t, locks, "elsewhere", 1)
	m := cluster.BeginMigration(slot, coretest.ServedElsewhere(cluster, slot))
	coretest.Unlock(t, held["elsewhere"])
	delete(held, "elsewhere")
	late := coretest.LeaseLater(t, locks.Mutex("{m}:free"))
	_, err := locks.Mutex("{m}:free").TryLock(ctx)
	coretest.WantErr(t, err, core.ErrUnavailable)
	for kind, lease := range held {
		short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		err := lease.Unlock(short)
		if compact := waiting[kind] == nil; errors.Is(err, core.ErrNotHeld) || err == nil && !compact {
			t.Errorf("%s: unlocked while the slot moves: %v", kind, err)
		}
		cancel()
	}
	// Longer than a request endures an outage, and than a place in line lasts.
	_, err = locks.Mutex("{m}:free").Lock(ctx, core.WithWait(6*time.Second))
	coretest.WantErr(t, err, core.ErrUnavailable)
	m.End()
	for kind, next := range waiting {
		lease := coretest.AwaitLease(t, next)
		if lease.Token() <= held[kind].Token() {
			t.Errorf("%s: token %d came after %d", kind, lease.Token(), held[kind].Token())
		}
		coretest.Unlock(t, lease)
	}
	coretest.Unlock(t, coretest.AwaitLease(t, late))
	coretest.Unlock(t, coretest.AwaitLease(t, joint))
	for kind, lock := range coretest.Strategies(other) { // what was unlocked meanwhile is unlocked now
		lease := coretest.AwaitLease(t, coretest.LeaseLater(t, lock("{m}:"+kind)))
		coretest.Unlock(t, lease)
	}
}
