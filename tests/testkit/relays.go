package testkit

import (
	"context"
	"net"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Relays are a [Relay] in front of each server of a deployment. Clients learn the addresses of the servers from the
// servers themselves, so they take the way through the relays by [Relays.Dial].
type Relays struct {
	servers []*Server
	relays  []*Relay
}

// NewRelays starts a relay in front of each server. They are closed when the test ends.
func NewRelays(t testing.TB, servers ...*Server) *Relays {
	t.Helper()
	r := &Relays{servers: servers}
	for _, s := range servers {
		r.relays = append(r.relays, s.For(t).Relay())
	}
	return r
}

// Relays starts relays in front of the servers, not of the sentinels.
func (s *Sentinel) Relays() *Relays { return NewRelays(s.t, s.Servers...) }

// Relays starts relays in front of all servers. What they say to each other does not pass them.
func (c *Cluster) Relays() *Relays { return NewRelays(c.t, c.Servers()...) }

// All returns the relays, in the order of the servers.
func (r *Relays) All() []*Relay { return slices.Clone(r.relays) }

// Of returns the relay in front of a server.
func (r *Relays) Of(s *Server) *Relay { return r.relays[slices.Index(r.servers, s)] }

// Heal ends the faults of all.
func (r *Relays) Heal() {
	for _, relay := range r.relays {
		relay.Heal()
	}
}

// Dial connects to the relay in front of a server, given the server's address, and to any other address itself.
func (r *Relays) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	i := slices.IndexFunc(r.servers, func(s *Server) bool { return s.Addr() == addr })
	if i < 0 {
		return d.DialContext(ctx, network, addr)
	}
	conn, err := d.DialContext(ctx, "tcp", r.relays[i].Addr())
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

// RelayedClient is [Sentinel.Client] through relays, which are healed before it is closed.
func (s *Sentinel) RelayedClient(relays *Relays, edit ...func(*redis.FailoverOptions)) *redis.Client {
	dial := func(o *redis.FailoverOptions) { o.Dialer = relays.Dial }
	rdb := s.Client(append([]func(*redis.FailoverOptions){dial}, edit...)...)
	s.t.Cleanup(relays.Heal)
	return rdb
}

// RelayedClient is [Cluster.Client] through relays, which are healed before it is closed.
func (c *Cluster) RelayedClient(relays *Relays, edit ...func(*redis.ClusterOptions)) *redis.ClusterClient {
	dial := func(o *redis.ClusterOptions) { o.Dialer = relays.Dial }
	rdb := c.Client(append([]func(*redis.ClusterOptions){dial}, edit...)...)
	c.t.Cleanup(relays.Heal)
	return rdb
}
