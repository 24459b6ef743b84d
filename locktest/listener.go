package locktest

import (
	"net"
	"sync"
	"time"
)

// A listener accepts TCP connections on a free port of the loopback.
type listener struct {
	net.Listener
	accepting sync.WaitGroup
}

// Addr returns the host and port of the server for clients that connect over TCP, such as asynq. The first call begins to
// listen. Do not call Addr in a bubble of testing/synctest: virtual time stands still while a goroutine waits for the network.
func (s *Server) Addr() string {
	if now := time.Now(); now == now.Round(0) { // only virtual time has no monotonic reading
		s.fatalf("locktest: Addr in a bubble of testing/synctest: use the client of Redis() there")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		s.fatalf("locktest: Addr after Close")
	}
	if s.local == nil {
		accept, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			s.fatalf("locktest: %v", err)
		}
		l, outer := &listener{Listener: accept}, s.newLinkLocked()
		l.accepting.Go(func() { l.accept(outer) })
		s.local = l
	}
	return s.local.Listener.Addr().String()
}

func (l *listener) accept(outer *link) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		if !outer.serve(c) {
			_ = c.Close()
		}
	}
}

func (l *listener) close() {
	_ = l.Close()
	l.accepting.Wait()
}
