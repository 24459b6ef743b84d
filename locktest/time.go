package locktest

import "time"

// Advance lets d pass for Redis: leases and records expire that end within d. Clients do not notice: for them as much time
// has passed as for the program. So a holder whose lease expires is in the place of a holder that was paused, and learns of
// the loss at its next renewal.
//
// An attempt of Once, such as a request behind httplock.Once or httplock.Idempotent, is not lost by expiry alone: its next
// renewal continues it unless another attempt has begun. To lose it, begin with another client after Advance, or call
// [Server.Flush].
//
// In a bubble of testing/synctest use [time.Sleep] instead, which lets time pass for Redis and for clients.
func (s *Server) Advance(d time.Duration) {
	s.mu.Lock()
	s.ahead += d
	s.mu.Unlock()
	s.setTime()
}

// setTime sets the clock of the embedded Redis, which stands still by itself once it was set. It is called before each
// command runs.
func (s *Server) setTime() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mini.SetTime(time.Now().Add(s.ahead))
}
