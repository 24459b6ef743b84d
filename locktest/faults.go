package locktest

import "github.com/holdfast-go/holdfast/core"

// Stop breaks all connections and refuses new ones, as a Redis that has crashed does. Its data stay. Stopping again does
// nothing.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	for _, l := range s.links {
		l.breakConns()
	}
}

// Start accepts connections again after Stop, with the data that the server had, as a Redis with an append-only file
// does. For a Redis that has lost its data, call Flush first.
func (s *Server) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = false
}

// Flush removes all data, as FLUSHALL or a restart without persistence does. All locks are free, and all records of Once are
// gone. Holders notice the loss at their next renewal, and so do attempts of Once in progress.
func (s *Server) Flush() { s.mini.FlushAll() }

// Pause keeps the server from running commands: clients get no answers, and time out. The commands run after Resume, even
// those whose clients have given up, as with a Redis process that was stopped by a signal.
func (s *Server) Pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resumed == nil && !s.closed {
		s.resumed = make(chan struct{})
	}
}

// Resume lets the server run commands again after Pause. The commands of requests that gave up run first: in a bubble of
// testing/synctest, call its Wait before you continue.
func (s *Server) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resumed != nil {
		close(s.resumed)
		s.resumed = nil
	}
}

// awaitResume returns once the server is not paused, or the connection was closed.
func (s *Server) awaitResume(closed <-chan struct{}) {
	s.mu.Lock()
	resumed := s.resumed
	s.mu.Unlock()
	if resumed == nil {
		return
	}
	select {
	case <-resumed:
	case <-closed:
	}
}

// Disconnect cuts a client of NewClient off. For Redis and all other clients its process has crashed: it does not renew or
// release anything, so its locks stay until their TTL has passed. The client itself sees a Redis that cannot be reached.
func (s *Server) Disconnect(c *core.Client) { s.cut(c, true) }

// Reconnect lets a client reach the server again after Disconnect.
func (s *Server) Reconnect(c *core.Client) { s.cut(c, false) }

func (s *Server) cut(locks *core.Client, cut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.clients {
		if c.locks == locks {
			if c.link.cut = cut; cut {
				c.link.breakConns()
			}
			return
		}
	}
	s.fatalf("locktest: the client is not one of this server's NewClient")
}
