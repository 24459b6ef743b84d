package middleware

import "sync/atomic"

// bodyMemory bounds how much memory the buffered bodies of all requests at a guard take together: clients that send
// slowly, or stop sending, hold what they have sent for as long as the server lets them.
type bodyMemory struct {
	limit int64
	taken atomic.Int64
}

// take reserves bytes, and returns false if there are not so many left.
func (m *bodyMemory) take(bytes int64) bool {
	if m == nil {
		return true
	}
	if m.taken.Add(bytes) > m.limit {
		m.taken.Add(-bytes)
		return false
	}
	return true
}

func (m *bodyMemory) give(bytes int64) {
	if m != nil {
		m.taken.Add(-bytes)
	}
}
