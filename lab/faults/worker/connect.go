package worker

import (
	"context"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// smallPool is the size of a pool that is soon used up.
const smallPool = 3

// connect makes the clients for the locks, several of them for a Redlock. Their options are go-redis's defaults, as most
// users have them.
func (o Order) connect() []redis.UniversalClient {
	switch l := o.Link; l.Kind {
	case Sentinel:
		opts := &redis.FailoverOptions{MasterName: testkit.MasterName, SentinelAddrs: l.Addrs, Dialer: l.dial}
		if o.SmallPool {
			opts.PoolSize = smallPool
		}
		return []redis.UniversalClient{redis.NewFailoverClient(opts)}
	case Cluster:
		opts := &redis.ClusterOptions{Addrs: l.Addrs, Dialer: l.dial, ReadOnly: o.Replicas, RouteByLatency: o.Replicas}
		if o.SmallPool {
			opts.PoolSize = smallPool
		}
		return []redis.UniversalClient{redis.NewClusterClient(opts)}
	}
	var all []redis.UniversalClient
	for _, addr := range o.Link.Addrs {
		opts := &redis.Options{Addr: addr}
		if o.SmallPool {
			opts.PoolSize, opts.ContextTimeoutEnabled = smallPool, true
		}
		all = append(all, redis.NewClient(opts))
	}
	return all
}

// connectDirectly makes a client that passes no relay, nil for a Redlock, of which no server alone knows the truth.
func (o Order) connectDirectly() redis.UniversalClient {
	const limit = 300 * time.Millisecond
	switch l := o.Link; l.Kind {
	case Sentinel:
		return redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: testkit.MasterName, SentinelAddrs: l.Addrs, MaxRetries: -1,
			ContextTimeoutEnabled: true, DialTimeout: limit,
		})
	case Cluster:
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: l.Addrs, ContextTimeoutEnabled: true, DialTimeout: limit})
	case Single:
		return redis.NewClient(&redis.Options{
			Network: l.Direct[0], Addr: l.Direct[1], MaxRetries: -1, ContextTimeoutEnabled: true, DialTimeout: limit,
		})
	}
	return nil
}

// dial leads through the relay in front of a server.
func (l Link) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	relay, ok := l.Relays[addr]
	if !ok {
		return d.DialContext(ctx, network, addr)
	}
	conn, err := d.DialContext(ctx, "tcp", relay)
	if err != nil {
		return nil, err
	}
	server, err := net.ResolveTCPAddr("tcp", addr)
	return &relayed{conn.(*net.TCPConn), server}, err
}

// relayed says that it leads to the server: after a failover, go-redis keeps the connections to the new master.
type relayed struct {
	*net.TCPConn
	server net.Addr
}

func (c *relayed) RemoteAddr() net.Addr { return c.server }
