package testkit

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// MasterName is what sentinels call the master.
	MasterName = "holdfast"

	sentinels = 3
	quorum    = 2
)

// Sentinel is a master with replicas, which sentinels watch over, private to a test. Start it with [StartSentinel].
type Sentinel struct {
	// Servers are the master at the start, and then its replicas.
	Servers []*Server
	// Sentinels are three, of whom two have to agree.
	Sentinels []*Server

	t testing.TB
}

// StartSentinel runs a master, replicas and sentinels until the test ends, and returns when the sentinels know each
// other and all servers, and the replicas are in sync. The options apply to the servers, which are on TCP ports.
func StartSentinel(t testing.TB, opts ...Option) *Sentinel {
	t.Helper()
	cfg := newConfig(append([]Option{Replicas(1)}, opts...))
	opts = slices.Concat([]Option{TCP()}, opts)
	master := Start(t, opts...)
	s := &Sentinel{t: t, Servers: []*Server{master}}
	for range cfg.replicas {
		link := Config("replicaof", fmt.Sprintf("127.0.0.1 %d", master.Port()))
		s.Servers = append(s.Servers, Start(t, slices.Concat(opts, []Option{link})...))
	}
	for range sentinels {
		watching := Start(t, TCP(), sentinelOf(master, cfg.downAfter))
		hasten(watching)
		s.Sentinels = append(s.Sentinels, watching)
	}
	for _, sentinel := range s.Sentinels {
		await(t, "the sentinels to know each other and the replicas", func() bool {
			return s.knowsAll(sentinel)
		})
	}
	s.AwaitInSync()
	return s
}

// sentinelOf makes the server a sentinel for a master.
func sentinelOf(master *Server, downAfter time.Duration) Option {
	return optionFunc(func(cfg *config) {
		cfg.sentinel = true
		for _, setting := range []string{
			fmt.Sprintf("monitor %s 127.0.0.1 %d %d", MasterName, master.Port(), quorum),
			fmt.Sprintf("down-after-milliseconds %s %d", MasterName, downAfter.Milliseconds()),
			fmt.Sprintf("failover-timeout %s 5000", MasterName),
		} {
			cfg.directives = append(cfg.directives, directive{"sentinel", setting})
		}
	})
}

// How often a sentinel tells the others of itself, in milliseconds. It lets a replica be that has become a master
// without its knowledge for four times that long, and then makes a replica of it again. The one that leads a failover
// asks its choice each second whether it has obeyed, and tells the others only then. So while they see that the old
// master is well, a failover needs the patience that sentinels have by default; in haste they undo it.
const (
	hastily   = 200
	patiently = 2000
)

// hasten lets a sentinel tell the others of itself, and ask its servers who they are, more often than each second,
// and continue even if the machine was too busy to let it run for a while.
func hasten(sentinel *Server) {
	tune(sentinel, "publish-period", hastily, "info-period", 1000, "tilt-trigger", 60000)
}

// tune changes what no configuration does. Redis before 7.0 cannot be told, and a sentinel that was killed either.
func tune(sentinel *Server, settings ...any) {
	rdb := redis.NewClient(sentinel.Options())
	defer rdb.Close()
	_ = rdb.Do(context.Background(), slices.Concat([]any{"sentinel", "debug"}, settings)...).Err()
}

func (s *Sentinel) knowsAll(sentinel *Server) bool {
	rdb := connect(sentinel)
	defer rdb.Close()
	ctx := context.Background()
	master := rdb.Master(ctx, MasterName).Val()
	if master["flags"] != "master" || master["num-other-sentinels"] != strconv.Itoa(sentinels-1) {
		return false
	}
	replicas := rdb.Replicas(ctx, MasterName).Val()
	for _, r := range replicas {
		if r["flags"] != "slave" || r["master-link-status"] != "ok" {
			return false
		}
	}
	return len(replicas) == len(s.Servers)-1
}

// connect returns a connection to a sentinel that gives up soon, for the caller to close.
func connect(sentinel *Server) *redis.SentinelClient {
	return redis.NewSentinelClient(&redis.Options{Addr: sentinel.Addr(), MaxRetries: -1, ReadTimeout: time.Second})
}

// For returns the same deployment for another test that uses it: its clients and relays end with that test.
func (s *Sentinel) For(t testing.TB) *Sentinel {
	shared := *s
	shared.t = t
	return &shared
}

// Client returns a new client of the master, whoever that is at each time, which is closed when the test ends. Each
// edit may change its options.
func (s *Sentinel) Client(edit ...func(*redis.FailoverOptions)) *redis.Client {
	opts := &redis.FailoverOptions{MasterName: MasterName}
	for _, sentinel := range s.Sentinels {
		opts.SentinelAddrs = append(opts.SentinelAddrs, sentinel.Addr())
	}
	for _, fn := range edit {
		fn(opts)
	}
	gate := &gate{dial: opts.Dialer}
	opts.Dialer = gate.Dial
	rdb := redis.NewFailoverClient(opts)
	s.t.Cleanup(func() {
		thaw(s.Servers, s.Sentinels)
		gate.close()
		_ = rdb.Close()
	})
	return rdb
}

// thaw lets all frozen servers continue.
func thaw(all ...[]*Server) {
	for _, s := range slices.Concat(all...) {
		s.thaw()
	}
}
