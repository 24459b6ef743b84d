package core_test

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
				unlock(t, lease)
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
			log := &record{}
			locks := newClient(t, rdb, core.WithLogger(textLogger(log)))
			if refused := wantMisfit(t, locks, cluster.Masters, 12, "use redis.NewClusterClient"); len(refused) == 0 {
				t.Error("no name was refused")
			}
			if n := strings.Count(log.String(), "locks do not work with this setup"); n != 1 {
				t.Errorf("%d warnings: %s", n, log)
			}
		})
	}
}

// TestClientOfReplica: the only address is that of a replica.
func TestClientOfReplica(t *testing.T) {
	t.Parallel()
	p := startReplicated(t)
	for name, rules := range map[string][]string{"INFO": {"+@all"}, "NoINFO": {"+@all", "-info"}} {
		t.Run(name, func(t *testing.T) {
			log := &record{}
			rdb := restricted(t, p.replica, rules...)
			locks := newClient(t, rdb, core.WithLogger(textLogger(log)))
			if refused := wantMisfit(t, locks, []*testkit.Server{p.replica}, 3, "connect to its master"); len(refused) != 9 {
				t.Errorf("refused: %q", refused)
			}
			testkit.Eventually(t, within, "the warning", func() bool { return strings.Contains(log.String(), "Redis is a replica") })
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
	locks := newClient(t, server.Client())
	unlock(t, mustLock(t, locks.Mutex("name")))
	server.ReplicaOf(other.Addr())
	_, err := locks.Mutex("name").TryLock(context.Background())
	wantErr(t, err, core.ErrUnavailable)
	if errors.Is(err, core.ErrMisconfigured) || !strings.Contains(err.Error(), "READONLY") {
		t.Errorf("error: %v", err)
	}
	waiting := lockLater(locks.Mutex("name"))
	server.Promote()
	if err := receive(t, waiting); err != nil {
		t.Error(err)
	}
}

// TestReplicaThatWasPromoted: a client that has first seen a replica works once that is a master, and endures the next failover.
func TestReplicaThatWasPromoted(t *testing.T) {
	t.Parallel()
	server, other := testkit.Start(t, testkit.TCP()), testkit.Start(t, testkit.TCP())
	server.ReplicaOf(other.Addr())
	locks := newClient(t, server.Client())
	_, err := locks.Mutex("name").TryLock(context.Background())
	wantErr(t, err, core.ErrMisconfigured)
	server.Promote()
	unlock(t, mustLock(t, locks.Mutex("name")))
	server.ReplicaOf(other.Addr())
	_, err = locks.Mutex("name").TryLock(context.Background())
	wantErr(t, err, core.ErrUnavailable)
}

// TestReleaseAndRenewalAreMoved: the slot of a lock that is held goes to a server that the client does not ask. Unlock returns
// what to do. The lease ends at its time.
func TestReleaseAndRenewalAreMoved(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	scripts := failScripts(rdb, errorReply("MOVED 3999 127.0.0.1:6381"), 0)
	failed := make(chan error, 1)
	locks := newClient(t, rdb, core.WithTTL(3*time.Second), core.WithHooks(core.Hooks{
		Renewed: func(_ context.Context, r core.Renewed) {
			if r.Err != nil {
				select {
				case failed <- r.Err:
				default:
				}
			}
		},
	}))
	lease, renewed := mustLock(t, locks.Mutex("a"), core.WithTTL(long)), mustLock(t, locks.Mutex("b"))
	scripts.left.Store(always)
	err := receive(t, failed)
	wantErr(t, err, core.ErrMisconfigured)
	waitFor(t, renewed.Done(), "the end of the lease")
	err = lease.Unlock(context.Background())
	wantErr(t, err, core.ErrMisconfigured)
	if errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), "use redis.NewClusterClient") {
		t.Errorf("Unlock: %v", err)
	}
	scripts.left.Store(0)
	if err := locks.Close(); err != nil {
		t.Error(err)
	}
}
