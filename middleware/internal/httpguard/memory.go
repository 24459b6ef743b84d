package httpguard

import "sync"

// shares bounds what all requests at a guard take together of something, and shares it among their owners: see [ownerOf].
// An owner gets no more than what is left for others. So one owner gets half of all at most, two get a third each, and
// there is always something left for another one.
type shares struct {
	mu    sync.Mutex
	most  int64
	taken int64
	by    map[string]int64
}

func newShares(most int64) *shares { return &shares{most: most, by: make(map[string]int64)} }

// take returns false if the owner would have more than is left.
func (s *shares) take(owner string, n int64) bool {
	if s == nil || n == 0 {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > s.most-s.taken-s.by[owner] {
		return false
	}
	s.taken += n
	s.by[owner] += n
	return true
}

func (s *shares) give(owner string, n int64) {
	if s == nil || n == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken -= n
	if s.by[owner] -= n; s.by[owner] == 0 {
		delete(s.by, owner)
	}
}

// move makes another owner of what was taken. It returns false, and changes nothing, if that one would have more than is
// left.
func (s *shares) move(from, to string, n int64) bool {
	if s == nil || n == 0 || from == to {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > s.most-(s.taken-n)-s.by[to] {
		return false
	}
	s.by[to] += n
	if s.by[from] -= n; s.by[from] == 0 {
		delete(s.by, from)
	}
	return true
}
