package cluster_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestReleasesStayOnTheirShard: in a Cluster a release is announced on the shard of the lock alone, to one connection
// per client and shard.
func TestReleasesStayOnTheirShard(t *testing.T) {
	t.Parallel()
	cluster := testkit.StartCluster(t, 3)
	coretest.LacksShards(t, cluster)
	holder := coretest.NewClient(t, cluster.Client(), core.WithTTL(coretest.Long))
	locks := coretest.NewClient(t, cluster.Client(), core.WithTTL(coretest.Long))
	var held []*core.Lease
	var waiting []<-chan error
	for i := range 10 {
		for kind, lock := range coretest.Strategies(holder) {
			name := fmt.Sprint(kind, i)
			held = append(held, coretest.MustLock(t, lock(name)))
			if kind == "Read" || kind == "FairRead" {
				lock = locks.Write // to wait for readers
			} else {
				lock = coretest.Strategies(locks)[kind]
			}
			waiting = append(waiting, coretest.LockLater(lock(name)))
			if kind == "Mutex" {
				coretest.AwaitListeners(t, holder, name, 1)
			} else {
				coretest.AwaitQueue(t, holder, name, 1)
			}
		}
	}
	for _, s := range cluster.Masters {
		if n := strings.Count(coretest.ClientList(t, s), "flags=P"); n != 1 {
			t.Errorf("%d connections of %s listen, want 1", n, s.Addr())
		}
	}
	for _, lease := range held {
		coretest.Unlock(t, lease)
	}
	for _, done := range waiting {
		if err := coretest.Receive(t, done); err != nil {
			t.Error(err)
		}
	}
	if sharded, plain := calls(cluster, "spublish"), calls(cluster, "publish"); sharded < int64(len(held)) || plain != 0 {
		t.Errorf("SPUBLISH was called %d times and PUBLISH %d times for %d releases", sharded, plain, len(held))
	}
	if plain := calls(cluster, "subscribe"); plain != 0 {
		t.Errorf("SUBSCRIBE was called %d times", plain)
	}
}

// TestRedissonInCluster: Redisson speaks and listens with SPUBLISH and SSUBSCRIBE in a Cluster of Redis 7.
func TestRedissonInCluster(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	cluster := testkit.StartCluster(t, 3)
	coretest.LacksShards(t, cluster)
	rdb := cluster.Client()
	locks := coretest.NewClient(t, cluster.Client(), core.WithPrefix(""), core.WithTTL(coretest.Long))

	lease := coretest.MustLock(t, locks.Mutex("go"))
	java := rdb.SSubscribe(ctx, "redisson_lock__channel:{go}")
	defer java.Close()
	if _, err := java.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	coretest.Unlock(t, lease)
	message, err := java.ReceiveTimeout(ctx, coretest.Within)
	if m, ok := message.(*redis.Message); !ok || m.Payload != "0" {
		t.Errorf("Redisson heard %v, %v", message, err)
	}

	rdb.HSet(ctx, "java", "8b0f7e2d-0000-4000-8000-000000000001:42", 1)
	rdb.PExpire(ctx, "java", coretest.Long)
	waiting := coretest.LockLater(locks.Mutex("java"))
	coretest.AwaitListeners(t, locks, "java", 1)
	rdb.Del(ctx, "java")
	if heard := rdb.SPublish(ctx, "redisson_lock__channel:{java}", "0").Val(); heard != 1 {
		t.Errorf("%d clients heard Redisson", heard)
	}
	if err := coretest.Receive(t, waiting); err != nil {
		t.Error(err)
	}
}

// TestClusterWithoutShards: on servers that do not know of sharded pub/sub, releases are announced as ever.
func TestClusterWithoutShards(t *testing.T) {
	t.Parallel()
	coretest.LacksShards(t, testkit.StartCluster(t, 1)) // or they have nothing to unlearn, and all other tests are of that
	var old []testkit.Option
	for _, command := range []string{"spublish", "ssubscribe", "sunsubscribe"} {
		old = append(old, testkit.Config("rename-command", command+` ""`))
	}
	cluster := testkit.StartCluster(t, 3, old...)
	a, b := coretest.NewClient(t, cluster.Client(), core.WithTTL(coretest.Long)), coretest.NewClient(t, cluster.Client(), core.WithTTL(coretest.Long))
	for i := range 6 {
		name := fmt.Sprint("name", i)
		held := coretest.MustLock(t, a.Mutex(name))
		waiting := coretest.LockLater(b.Mutex(name))
		coretest.AwaitListeners(t, a, name, 1)
		coretest.Unlock(t, held)
		if err := coretest.Receive(t, waiting); err != nil {
			t.Error(err)
		}
	}
	if said := calls(cluster, "publish"); said < 6 {
		t.Errorf("PUBLISH was called %d times", said)
	}
}

// TestRightsInCluster: whatever a user may do of what has to do with messages, waiters get the lock; and users with the
// same rights hear each other.
func TestRightsInCluster(t *testing.T) {
	t.Parallel()
	for name, rules := range map[string]struct {
		user  string
		heard bool
	}{
		"plain only":      {"-spublish -ssubscribe -sunsubscribe -pubsub|shardnumsub", true},
		"sharded only":    {"-publish -subscribe -unsubscribe -pubsub|numsub", true},
		"one without":     {"-ssubscribe", false},
		"the other":       {"-spublish", false},
		"no messages":     {"-@pubsub", false},
		"only subscribes": {"-publish -spublish", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := testkit.StartCluster(t, 2)
			coretest.LacksShards(t, cluster)
			for _, s := range cluster.Masters {
				coretest.SetUser(t, s, strings.Fields("~lock:* ~holdfast:* &redisson_lock__channel:* +@all "+rules.user))
			}
			as := func(o *redis.ClusterOptions) { o.Username, o.Password = "locker", "secret" }
			a, b := coretest.NewClient(t, cluster.Client(as), core.WithTTL(coretest.Long)), coretest.NewClient(t, cluster.Client(as))
			for _, kind := range []string{"Mutex", "Fair"} {
				held := coretest.MustLock(t, coretest.Strategies(a)[kind](kind))
				waiting := coretest.LockLater(coretest.Strategies(b)[kind](kind))
				if kind == "Fair" {
					coretest.AwaitQueue(t, a, kind, 1)
				} else if rules.heard {
					coretest.AwaitListeners(t, a, kind, 1)
				}
				coretest.Unlock(t, held)
				if err := coretest.Receive(t, waiting); err != nil {
					t.Errorf("%s: %v", kind, err)
				}
			}
		})
	}
}
