package core_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestRepeatedGrantIsAcknowledgedToo: the reply to an acquire is lost and so is what it wrote; the repetition, on
// another connection that has written nothing, must not pass for acknowledged. Entering again for a shorter time is
// what has the least to write.
func TestRepeatedGrantIsAcknowledgedToo(t *testing.T) {
	t.Parallel()
	p := startReplicated(t)
	relay := p.master.Relay()
	rdb := relay.Client()
	warmPool(t, rdb)
	locks := newClient(t, rdb, core.WithReplicaAck(1, soon))
	lease := mustLock(t, locks.Mutex("name"), core.WithTTL(long), core.WithReplicaAck(1, ample))
	p.link.Drop(testkit.Both)
	relay.LoseReplies("lock:name", 1, testkit.Closed)
	ctx, cancel := context.WithTimeout(lease.Context(), time.Second)
	defer cancel()
	inner, err := locks.Mutex("name").Lock(ctx, core.WithTTL(5*time.Second))
	if inner != nil || relay.LostReplies() != 1 {
		t.Errorf("granted: %v, %d replies lost", inner != nil, relay.LostReplies())
	}
	wantErr(t, err, core.ErrUnavailable)
	p.link.Heal()
	p.awaitReplica(t)
	relay.LoseReplies("lock:name", 1, testkit.Closed)
	inner = mustLockWith(t, lease.Context(), locks.Mutex("name"), core.WithReplicaAck(1, ample))
	testkit.Eventually(t, within, "two holds", func() bool {
		info, err := locks.Inspect(context.Background(), "name")
		return err == nil && len(info.Holders) == 1 && info.Holders[0].Holds == 2
	})
	unlock(t, inner)
	unlock(t, lease)
	awaitTidy(t, p.master.Client())
}

// TestForgottenScriptsAreWaitedForToo: the server does not know the script, so it is sent whole, with WAIT behind it.
func TestForgottenScriptsAreWaitedForToo(t *testing.T) {
	t.Parallel()
	p := startReplicated(t)
	rdb := p.master.Client()
	locks := newClient(t, rdb, core.WithTTL(long), core.WithReplicaAck(1, ample))
	unlock(t, mustLock(t, locks.Mutex("name")))
	rdb.ScriptFlush(context.Background())
	unlock(t, mustLock(t, locks.Mutex("name")))
	p.link.Drop(testkit.Both)
	rdb.ScriptFlush(context.Background())
	_, err := locks.Mutex("name").TryLock(context.Background(), core.WithReplicaAck(1, soon))
	wantNotReplicated(t, err, 0, 1)
	awaitFree(t, locks, "name")
}

// TestSlowReplicaDelaysNothingElse: commands that wait for replicas do not hold up those that do not.
func TestSlowReplicaDelaysNothingElse(t *testing.T) {
	t.Parallel()
	p := startReplicated(t)
	locks := newClient(t, p.master.Client(), core.WithTTL(long))
	unlock(t, mustLock(t, locks.Mutex("name"))) // the script is known
	p.link.Hold(testkit.ToServer)
	var slow []<-chan *core.Lease
	for i := range 20 {
		slow = append(slow, leaseLater(t, locks.Mutex(fmt.Sprint("slow", i)), core.WithReplicaAck(1, time.Minute)))
	}
	testkit.Eventually(t, within, "them to wait", func() bool {
		return p.master.Info("clients", "blocked_clients") != "0"
	})
	for i := range 20 {
		unlock(t, mustLock(t, locks.Mutex(fmt.Sprint("name", i))))
	}
	for _, waiting := range slow {
		select {
		case <-waiting:
			t.Error("granted without an acknowledgement")
		default:
		}
	}
	p.link.Deliver()
	for _, waiting := range slow {
		unlock(t, awaitLease(t, waiting))
	}
}

// TestReplicaAckOutlastsReadTimeout: the connection is not given up while it waits for replicas.
func TestReplicaAckOutlastsReadTimeout(t *testing.T) {
	t.Parallel()
	p := startReplicated(t)
	rdb := p.master.Client(func(o *redis.Options) { o.ReadTimeout = time.Second })
	locks := newClient(t, rdb, core.WithTTL(long))
	p.link.Delay(testkit.ToServer, 2*time.Second)
	unlock(t, mustLock(t, locks.Mutex("name"), core.WithReplicaAck(1, ample)))
}
