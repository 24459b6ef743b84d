package sentinel_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestRepeatedGrantIsAcknowledgedToo: the reply to an acquire is lost and so is what it wrote; the repetition, on
// another connection that has written nothing, must not pass for acknowledged. Entering again for a shorter time is
// what has the least to write.
func TestRepeatedGrantIsAcknowledgedToo(t *testing.T) {
	t.Parallel()
	p := coretest.StartReplicated(t)
	relay := p.Master.Relay()
	rdb := relay.Client()
	coretest.WarmPool(t, rdb)
	locks := coretest.NewClient(t, rdb, core.WithReplicaAck(1, coretest.Soon))
	lease := coretest.MustLock(t, locks.Mutex("name"), core.WithTTL(coretest.Long), core.WithReplicaAck(1, coretest.Ample))
	p.Link.Drop(testkit.Both)
	relay.LoseReplies("lock:name", 1, testkit.Closed)
	ctx, cancel := context.WithTimeout(lease.Context(), time.Second)
	defer cancel()
	inner, err := locks.Mutex("name").Lock(ctx, core.WithTTL(5*time.Second))
	if inner != nil || relay.LostReplies() != 1 {
		t.Errorf("granted: %v, %d replies lost", inner != nil, relay.LostReplies())
	}
	coretest.WantErr(t, err, core.ErrUnavailable)
	p.Link.Heal()
	p.AwaitReplica(t)
	relay.LoseReplies("lock:name", 1, testkit.Closed)
	inner = coretest.MustLockWith(t, lease.Context(), locks.Mutex("name"), core.WithReplicaAck(1, coretest.Ample))
	testkit.Eventually(t, coretest.Within, "two holds", func() bool {
		info, err := locks.Inspect(context.Background(), "name")
		return err == nil && len(info.Holders) == 1 && info.Holders[0].Holds == 2
	})
	coretest.Unlock(t, inner)
	coretest.Unlock(t, lease)
	coretest.AwaitTidy(t, p.Master.Client())
}

// TestForgottenScriptsAreWaitedForToo: the server does not know the script, so it is sent whole, with WAIT behind it.
func TestForgottenScriptsAreWaitedForToo(t *testing.T) {
	t.Parallel()
	p := coretest.StartReplicated(t)
	rdb := p.Master.Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithReplicaAck(1, coretest.Ample))
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("name")))
	rdb.ScriptFlush(context.Background())
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("name")))
	p.Link.Drop(testkit.Both)
	rdb.ScriptFlush(context.Background())
	_, err := locks.Mutex("name").TryLock(context.Background(), core.WithReplicaAck(1, coretest.Soon))
	coretest.WantNotReplicated(t, err, 0, 1)
	awaitFree(t, locks, "name")
}

// TestSlowReplicaDelaysNothingElse: commands that wait for replicas do not hold up those that do not.
func TestSlowReplicaDelaysNothingElse(t *testing.T) {
	t.Parallel()
	p := coretest.StartReplicated(t)
	locks := coretest.NewClient(t, p.Master.Client(), core.WithTTL(coretest.Long))
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("name"))) // the script is known
	p.Link.Hold(testkit.ToServer)
	var slow []<-chan *core.Lease
	for i := range 20 {
		slow = append(slow, coretest.LeaseLater(t, locks.Mutex(fmt.Sprint("slow", i)), core.WithReplicaAck(1, time.Minute)))
	}
	testkit.Eventually(t, coretest.Within, "them to wait", func() bool {
		return p.Master.Info("clients", "blocked_clients") != "0"
	})
	for i := range 20 {
		coretest.Unlock(t, coretest.MustLock(t, locks.Mutex(fmt.Sprint("name", i))))
	}
	for _, waiting := range slow {
		select {
		case <-waiting:
			t.Error("granted without an acknowledgement")
		default:
		}
	}
	p.Link.Deliver()
	for _, waiting := range slow {
		coretest.Unlock(t, coretest.AwaitLease(t, waiting))
	}
}

// TestReplicaAckOutlastsReadTimeout: the connection is not given up while it waits for replicas.
func TestReplicaAckOutlastsReadTimeout(t *testing.T) {
	t.Parallel()
	p := coretest.StartReplicated(t)
	rdb := p.Master.Client(func(o *redis.Options) { o.ReadTimeout = time.Second })
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	p.Link.Delay(testkit.ToServer, 2*time.Second)
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("name"), core.WithReplicaAck(1, coretest.Ample)))
}
