package locktest

import (
	"errors"
	"net"
	"sync"
)

// A link is the network between one go-redis client and the server.
type link struct {
	server *Server

	// Guarded by the server's mu.
	cut   bool
	conns map[*conn]struct{}
}

// dial connects to the server in memory, so that no real network keeps virtual time from going on.
func (l *link) dial() (net.Conn, error) {
	client, service := net.Pipe()
	if !l.serve(service) {
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: errors.New("connection refused")}
	}
	return client, nil
}

// serve lets the server answer on its end of a connection. It returns false if the server does not accept connections.
func (l *link) serve(service net.Conn) bool {
	s := l.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped || s.closed || l.cut {
		return false
	}
	c := &conn{Conn: service, link: l, received: make(chan []byte, receiveBuffer), closed: make(chan struct{})}
	l.conns[c] = struct{}{}
	go c.receive()
	s.mini.Server().ServeConn(c)
	return true
}

// breakConns closes all connections of the link. The caller must hold the server's mu.
func (l *link) breakConns() {
	for c := range l.conns {
		_ = c.Conn.Close()
	}
}

// receiveBuffer is how many writes of a client the server takes before it has run the first of them. An in-memory
// connection has no buffer of its own, so a client that sends a long pipeline before it reads would block forever.
const receiveBuffer = 1 << 12

// A conn is the server's end of a connection. It hands on what the client sends once the server's time is set, and not
// while the server is paused.
type conn struct {
	net.Conn
	link *link

	received chan []byte // what the client has sent; closed when nothing more can come
	rest     []byte      // of the last element of received

	once   sync.Once
	closed chan struct{}
}

// receive reads until the connection ends.
func (c *conn) receive() {
	defer close(c.received)
	for {
		data := make([]byte, 4<<10)
		n, err := c.Conn.Read(data)
		if err != nil {
			return
		}
		select {
		case c.received <- data[:n]:
		case <-c.closed:
			return
		}
	}
}

// Read returns what the client has sent.
func (c *conn) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		data, ok := <-c.received
		if !ok {
			return 0, net.ErrClosed
		}
		c.link.server.awaitResume(c.closed)
		c.link.server.setTime()
		c.rest = data
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// Close ends the connection for both ends.
func (c *conn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		s := c.link.server
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(c.link.conns, c)
	})
	return c.Conn.Close()
}
