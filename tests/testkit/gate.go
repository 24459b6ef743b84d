package testkit

import (
	"context"
	"net"
	"sync"
)

// gate is what the connections of one client pass. It is closed before the client, which go-redis does not
// always survive otherwise: what it does in the background finds a sentinel after its client was closed, and listens
// to it forever; or it reads a reply that Close has seen coming and then waits for.
type gate struct {
	dial func(ctx context.Context, network, addr string) (net.Conn, error) // nil for the usual one

	mu     sync.Mutex
	closed bool
	conns  []net.Conn
}

// Dial is the client's dialer.
func (g *gate) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	dial := g.dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	if g.isClosed() {
		return nil, net.ErrClosed
	}
	conn, err := dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	g.conns = append(g.conns, conn)
	return conn, nil
}

func (g *gate) isClosed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// close breaks all connections and lets no more be made.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for _, conn := range g.conns {
		_ = conn.Close()
	}
}
