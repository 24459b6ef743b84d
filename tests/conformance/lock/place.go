package lockconformance

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// place is where one copy of a lock lives: a server by itself, or a deployment that clients know as one Redis.
type place struct {
	servers []*testkit.Server                             // all that may serve, now or later
	settled func()                                        // returns when it works after its servers were restarted
	client  func(testing.TB, *User) redis.UniversalClient // nil is the default user
	// relayed connects through a relay in front of each server, with connections that wait so long for a reply.
	relayed func(t testing.TB, readTimeout time.Duration) (redis.UniversalClient, []*testkit.Relay)
}

func startServer(t testing.TB, user *User, opts ...testkit.Option) *place {
	if user != nil {
		// In its configuration, so that the user is there again when the server was restarted.
		rules := strings.Join(append([]string{user.Name, "on", ">" + user.Password, "resetchannels"}, user.Rules...), " ")
		opts = append([]testkit.Option{testkit.Config("user", rules)}, opts...)
	}
	server := testkit.Start(t, opts...)
	return &place{
		servers: []*testkit.Server{server},
		settled: func() {},
		client:  func(t testing.TB, as *User) redis.UniversalClient { return server.For(t).Client(as.logIn) },
		relayed: func(t testing.TB, readTimeout time.Duration) (redis.UniversalClient, []*testkit.Relay) {
			relay := server.For(t).Relay()
			client := relay.Client(user.logIn, func(o *redis.Options) { o.ReadTimeout = readTimeout })
			return client, []*testkit.Relay{relay}
		},
	}
}

func (u *User) logIn(o *redis.Options) {
	if u != nil {
		o.Username, o.Password = u.Name, u.Password
	}
}

func startSentinel(t testing.TB, opts ...testkit.Option) *place {
	s := testkit.StartSentinel(t, opts...)
	return &place{
		servers: s.Servers,
		settled: s.AwaitInSync,
		client:  func(t testing.TB, _ *User) redis.UniversalClient { return s.For(t).Client() },
		relayed: func(t testing.TB, readTimeout time.Duration) (redis.UniversalClient, []*testkit.Relay) {
			s := s.For(t)
			relays := s.Relays()
			return s.RelayedClient(relays, func(o *redis.FailoverOptions) { o.ReadTimeout = readTimeout }), relays.All()
		},
	}
}

func startCluster(t testing.TB, opts ...testkit.Option) *place {
	c := testkit.StartCluster(t, 3, append([]testkit.Option{testkit.Replicas(1)}, opts...)...)
	return &place{
		servers: c.Servers(),
		settled: c.AwaitInSync,
		client:  func(t testing.TB, _ *User) redis.UniversalClient { return c.For(t).Client() },
		relayed: func(t testing.TB, readTimeout time.Duration) (redis.UniversalClient, []*testkit.Relay) {
			c := c.For(t)
			relays := c.Relays()
			return c.RelayedClient(relays, func(o *redis.ClusterOptions) {
				o.ReadTimeout = readTimeout
				o.ClusterStateReloadInterval = time.Minute // a request that tests of held requests do not expect
			}), relays.All()
		},
	}
}

// Deployment is a Redis of several servers. It takes seconds to start, so all tests share it, under names of their
// own, but those that break it. They start another of its kind.
type Deployment struct {
	start func(testing.TB, ...testkit.Option) *place
	place *place
}

// Sentinel starts a master with a replica, and three sentinels, until the end of t.
func Sentinel(t testing.TB) *Deployment { return &Deployment{startSentinel, startSentinel(t)} }

// Cluster starts a Cluster of three masters with a replica each, until the end of t.
func Cluster(t testing.TB) *Deployment { return &Deployment{startCluster, startCluster(t)} }

// together bounds how many deployments are up at once beside those that are shared: each is half a dozen processes.
var together = make(chan struct{}, 12)

// another starts a deployment that a test may break.
func (d *Deployment) another(t testing.TB, opts ...testkit.Option) *place {
	together <- struct{}{}
	t.Cleanup(func() { <-together })
	return d.start(t, opts...)
}

// warm opens several connections to each master.
func warm(t testing.TB, rdb redis.UniversalClient) {
	t.Helper()
	cluster, ok := rdb.(*redis.ClusterClient)
	if !ok {
		warmServer(t, rdb.(*redis.Client))
		return
	}
	testkit.Eventually(t, within, "the Cluster to be known", func() bool {
		return cluster.ForEachMaster(context.Background(), func(_ context.Context, master *redis.Client) error {
			warmServer(t, master)
			return nil
		}) == nil
	})
}

// warmServer opens connections and gives them to the pool together. On a busy machine the handshake of an impatient
// connection may need another try.
func warmServer(t testing.TB, rdb *redis.Client) {
	for began := time.Now(); ; {
		err := openFour(rdb)
		if err == nil {
			return
		}
		if time.Since(began) > within {
			t.Errorf("warm the pool: %v", err)
			return
		}
	}
}

func openFour(rdb *redis.Client) error {
	for range 4 {
		conn := rdb.Conn()
		defer conn.Close()
		if err := conn.Ping(context.Background()).Err(); err != nil {
			return err
		}
	}
	return nil
}
