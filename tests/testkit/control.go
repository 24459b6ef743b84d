package testkit

import (
	"errors"
	"time"
)

// Pause freezes the server with SIGSTOP. Connections stay open, the kernel even
// accepts new ones, and requests queue up in the sockets; all are executed after
// [Server.Resume], also those whose client has given up meanwhile, while keys
// expire as if nothing had happened.
//
// Pause returns when the server has stopped. The kernel sends the signal to a server that runs on another processor, which can
// answer one more request meanwhile.
func (s *Server) Pause() {
	s.t.Helper()
	s.signal(func(pid int) error {
		if err := pauseProcess(pid); err != nil {
			return err
		}
		return awaitStop(pid)
	})
}

// Resume lets a paused server continue, with SIGCONT.
func (s *Server) Resume() {
	s.t.Helper()
	s.signal(resumeProcess)
}

func (s *Server) signal(send func(pid int) error) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil || s.proc.exited() {
		s.t.Fatalf("testkit: the server does not run:\n%s", s.log())
	}
	if err := send(s.proc.cmd.Process.Pid); err != nil {
		s.t.Fatalf("testkit: signal: %v", err)
	}
}

// thaw is Resume for the end of a test: it does not mind a server that does not run.
func (s *Server) thaw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil && !s.proc.exited() {
		_ = resumeProcess(s.proc.cmd.Process.Pid) // it may be ending just now
	}
}

// Kill ends the server with SIGKILL, paused or not, and waits until it is gone.
// A server that is killed already stays so.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop()
}

// running reports whether the server was not killed.
func (s *Server) running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc != nil
}

// stop is Kill for callers which hold s.mu.
func (s *Server) stop() {
	if s.proc != nil {
		s.proc.kill()
		s.proc = nil
	}
}

// Restart starts the server again on the same address, after killing it if it
// still runs, and waits until it answers. Without [AOF] it comes back empty. Its
// configuration is what it was, with what sentinels have rewritten in it.
func (s *Server) Restart() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop()
	err := s.run()
	// A port that could not be kept was free for a moment: a connection of some
	// other process may have got it as its local port, and will hardly hold it.
	for deadline := time.Now().Add(startTimeout); errors.Is(err, errAddrInUse) && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
		err = s.run()
	}
	if err != nil {
		s.t.Fatalf("testkit: restart: %v", err)
	}
}
