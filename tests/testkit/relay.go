package testkit

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Relay is a proxy in front of one server which does damage when told to. It
// listens on a TCP port of 127.0.0.1. Make it with [NewRelay] or [Server.Relay].
type Relay struct {
	t       testing.TB
	network string // of the server
	addr    string // of the server
	ln      net.Listener
	thaw    func()          // lets a frozen server continue
	ctx     context.Context // ends dials when the relay is closed
	cancel  context.CancelFunc
	wg      sync.WaitGroup // accept loop and links

	mu     sync.Mutex // guards all below, and the state of links and pipes
	links  map[*link]struct{}
	closed bool
	faults faults
	lost   int // replies swallowed by LoseReplies
}

// NewRelay starts a relay in front of the server at addr, which need not run
// yet. It is closed when the test ends.
func NewRelay(t testing.TB, network, addr string) *Relay {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("testkit: relay: %v", err)
	}
	r := &Relay{t: t, network: network, addr: addr, ln: ln, thaw: func() {}, links: make(map[*link]struct{})}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.faults.clear()
	t.Cleanup(r.Close)
	r.wg.Go(r.accept)
	return r
}

// Addr returns the relay's host:port.
func (r *Relay) Addr() string { return r.ln.Addr().String() }

// Options returns new go-redis options which lead through the relay. All else
// has the defaults of go-redis.
func (r *Relay) Options() *redis.Options {
	return &redis.Options{Network: "tcp", Addr: r.Addr()}
}

// Client returns a new client whose connections pass the relay. It is closed
// when the test ends. Each edit may change its options.
func (r *Relay) Client(edit ...func(*redis.Options)) *redis.Client {
	return newClient(r.t, r.Options(), edit, func() {
		r.Heal()
		r.thaw()
	})
}

// Connections returns the number of connections that neither side nor the relay
// has ended.
func (r *Relay) Connections() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for l := range r.links {
		if !l.over {
			n++
		}
	}
	return n
}

// Close closes the relay and all its connections; held bytes are lost. It waits
// for the relay's goroutines, so a function given to OnRequest must not call it.
// The test's end does it too.
func (r *Relay) Close() {
	r.mu.Lock()
	r.closed = true
	for l := range r.links {
		l.close()
	}
	r.mu.Unlock()
	r.cancel()
	_ = r.ln.Close()
	r.wg.Wait()
}

func (r *Relay) accept() {
	for {
		conn, err := r.ln.Accept()
		if err != nil {
			return // closed
		}
		r.wg.Go(func() { r.serve(conn.(*net.TCPConn)) })
	}
}

// serve connects one client to the server, and returns when both are done.
func (r *Relay) serve(client *net.TCPConn) {
	defer client.Close()
	if r.refuses() {
		return
	}
	var d net.Dialer
	server, err := d.DialContext(r.ctx, r.network, r.addr)
	if err != nil {
		return
	}
	defer server.Close()
	l := newLink(r, client, server.(duplex))
	if !r.add(l) {
		return
	}
	l.run()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.links, l)
}

func (r *Relay) refuses() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.faults.refuse
}

func (r *Relay) add(l *link) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.faults.refuse { // perhaps only since the dial has begun
		return false
	}
	for i, p := range l.pipes {
		p.cut = r.faults.ways[i].cut
	}
	r.links[l] = struct{}{}
	return true
}
