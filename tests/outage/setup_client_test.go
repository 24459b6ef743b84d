package outage_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// wrapped is a Redis client of another type, as tracing libraries make them.
type wrapped struct{ redis.UniversalClient }

// wantMisfit asks for a lock of each name, and checks that each is granted or refused after one request.
func wantMisfit(t *testing.T, locks *core.Client, servers []*testkit.Server, names int, advice string) (refused []string) {
	t.Helper()
	sent := func() (n int64) {
		for _, server := range servers {
			stats := server.CommandStats()
			for _, name := range []string{"eval", "evalsha"} {
				n += stats[name].Calls + stats[name].Rejected
			}
		}
		return n
	}
	for i := range names {
		name := fmt.Sprint("name", i)
		for what, lock := range map[string]func(context.Context, ...core.LockOption) (*core.Lease, error){
			"TryLock": locks.Mutex(name).TryLock, "Lock": locks.Mutex(name).Lock, "Fair": locks.Fair(name).Lock,
		} {
			before := sent()
			lease, err := lock(context.Background())
			if err == nil {
				coretest.Unlock(t, lease)
				continue
			}
			if n := sent() - before; n > 2 { // EVAL follows if the server does not know the script
				t.Errorf("%s: %d scripts were sent", what, n)
			}
			if !errors.Is(err, core.ErrMisconfigured) || errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), advice) {
				t.Errorf("%s: %v", what, err)
			}
			refused = append(refused, name)
		}
	}
	return refused
}

// TestClientOfOneServerOnCluster: a client of one server asks one node of a Cluster, which owns a third of the names. Waiting does
// not help with the others, so each call fails at once, and the log has one line.
func TestClientOfOneServerOnCluster(t *testing.T) {
	t.Parallel()
	cluster := testkit.StartCluster(t, 3)
	addr := cluster.Masters[0].Addr()
	universal := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: []string{addr}})
	t.Cleanup(func() { _ = universal.Close() })
	for name, rdb := range map[string]redis.UniversalClient{
		"Client": cluster.Masters[0].Client(), "UniversalClient": universal, "Wrapped": wrapped{cluster.Masters[0].Client()},
	} {
		t.Run(name, func(t *testing.T) {
			log := &coretest.Record{}
			locks := coretest.NewClient(t, rdb, core.WithLogger(coretest.TextLogger(log)))
			if refused := wantMisfit(t, locks, cluster.Masters, 12, "use redis.NewClusterClient"); len(refused) == 0 {
				t.Error("no name was refused")
			}
			if n := strings.Count(log.String(), "locks do not work with this setup"); n != 1 {
				t.Errorf("%d warnings: %s", n, log)
			}
		})
	}
}

// TestClientOfReplica: the only address is a replica's.
func TestClientOfReplica(t *testing.T) {
	t.Parallel()
	p := coretest.StartReplicated(t)
	for name, rules := range map[string][]string{"INFO": {"+@all"}, "NoINFO": {"+@all", "-info"}} {
		t.Run(name, func(t *testing.T) {
			log := &coretest.Record{}
			rdb := coretest.Restricted(t, p.Replica, rules...)
			locks := coretest.NewClient(t, rdb, core.WithLogger(coretest.TextLogger(log)))
			if refused := wantMisfit(t, locks, []*testkit.Server{p.Replica}, 3, "connect to its master"); len(refused) != 9 {
				t.Errorf("refused: %q", refused)
			}
			testkit.Eventually(t, coretest.Within, "the warning", func() bool { return strings.Contains(log.String(), "Redis is a replica") })
			if n := strings.Count(log.String(), "level=WARN"); n != 1 {
				t.Errorf("%d warnings: %s", n, log)
			}
		})
	}
}

// TestMasterThatBecameReplica: READONLY of a server that was a master is a failover. A waiting Lock endures it.
func TestMasterThatBecameReplica(t *testing.T) {
	t.Parallel()
	server, other := testkit.Start(t, testkit.TCP()), testkit.Start(t, testkit.TCP())
	locks := coretest.NewClient(t, server.Client())
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("name")))
	server.ReplicaOf(other.Addr())
	_, err := locks.Mutex("name").TryLock(context.Background())
	coretest.WantErr(t, err, core.ErrUnavailable)
	if errors.Is(err, core.ErrMisconfigured) || !strings.Contains(err.Error(), "READONLY") {
		t.Errorf("error: %v", err)
	}
	waiting := coretest.LockLater(locks.Mutex("name"))
	server.Promote()
	if err := coretest.Receive(t, waiting); err != nil {
		t.Error(err)
	}
}

// TestReplicaThatWasPromoted: a client that has first seen a replica works once that is a master, and endures the next failover.
func TestReplicaThatWasPromoted(t *testing.T) {
	t.Parallel()
	server, other := testkit.Start(t, testkit.TCP()), testkit.Start(t, testkit.TCP())
	server.ReplicaOf(other.Addr())
	locks := coretest.NewClient(t, server.Client())
	_, err := locks.Mutex("name").TryLock(context.Background())
	coretest.WantErr(t, err, core.ErrMisconfigured)
	server.Promote()
	coretest.Unlock(t, coretest.MustLock(t, locks.Mutex("name")))
	server.ReplicaOf(other.Addr())
	_, err = locks.Mutex("name").TryLock(context.Background())
	coretest.WantErr(t, err, core.ErrUnavailable)
}

// TestReleaseAndRenewalAreMoved: the slot of a lock that is held goes to a server that the client does not ask. Unlock returns
// what to do. The lease ends at its time.
func TestReleaseAndRenewalAreMoved(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	scripts := coretest.FailScripts(rdb, coretest.ErrorReply("MOVED 3999 127.0.0.1:6381"), 0)
	failed := make(chan error, 1)
	locks := coretest.NewClient(t, rdb, core.WithTTL(3*time.Second), core.WithHooks(core.Hooks{
		Renewed: func(_ context.Context, r core.Renewed) {
			if r.Err != nil {
				select {
				case failed <- r.Err:
				default:
				}
			}
		},
	}))
	lease, renewed := coretest.MustLock(t, locks.Mutex("a"), core.WithTTL(coretest.Long)), coretest.MustLock(t, locks.Mutex("b"))
	scripts.Left.Store(coretest.Always)
	err := coretest.Receive(t, failed)
	coretest.WantErr(t, err, core.ErrMisconfigured)
	coretest.WaitFor(t, renewed.Done(), "the end of the lease")
	err = lease.Unlock(context.Background())
	coretest.WantErr(t, err, core.ErrMisconfigured)
	if errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), "use redis.NewClusterClient") {
		t.Errorf("Unlock: %v", err)
	}
	scripts.Left.Store(0)
	if err := locks.Close(); err != nil {
		t.Error(err)
	}
}
