package throttle

import "sync"

// mostSeen bounds the memory of a Seen.
const mostSeen = 10_000

// Seen remembers of which keys a line was logged. Beyond 10,000 keys it begins anew, so a key may be logged again. It is safe
// for concurrent use. The zero value has seen none.
type Seen struct {
	mu   sync.Mutex
	keys map[string]struct{}
}

// First returns true if the key is seen for the first time.
func (s *Seen) First(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, seen := s.keys[key]
	if s.keys == nil || !seen && len(s.keys) >= mostSeen {
		s.keys = make(map[string]struct{})
	}
	s.keys[key] = struct{}{}
	return !seen
}
