//go:build unix

package interop_test

import (
	"strconv"
	"testing"
)

// tokens: tokens of holdfast grow whatever Java has held between, and RFencedLock's are a series of their own,
// in which grants to Go do not count.
func tokens(t *testing.T, s *stage) {
	java, golang := s.java, s.golang
	last := int64(0)
	for i, kind := range []string{"lock", "fair", "fenced", "fenced", "read", "write"} {
		java.must("x", "lock", as(kind, "tokens")...)
		if kind == "fenced" {
			java.want(strconv.Itoa(i-1), "x", "token", as(kind, "tokens")...)
		}
		if holders := inspect(t, s.place, "tokens").Holders; len(holders) != 1 || holders[0].Token != 0 {
			t.Errorf("Java's %s has holders %+v, want one without a token", kind, holders)
		}
		java.must("x", "unlock", as(kind, "tokens")...)
		golang.must("x", "lock", lock("tokens")...)
		token, err := strconv.ParseInt(golang.must("x", "token", lock("tokens")...).Value, 10, 64)
		if err != nil || token <= last {
			t.Errorf("token %d, %v, came after %d", token, err, last)
		}
		last = token
		golang.must("x", "unlock", lock("tokens")...)
	}
	if got := s.rdb.Get(t.Context(), "redisson_lock_token:{tokens}").Val(); got != "2" {
		t.Errorf("Redisson's last token is %s, want 2", got)
	}
}

// counter: the counter of RFencedLock is a key without a TTL. Java continues from whatever number is there, begins at 1
// again if it is lost, and counts a re-entry. Grants of its other kinds do not count.
func counter(t *testing.T, s *stage) {
	const key = "redisson_lock_token:{counter}"
	grant := func(want string) {
		t.Helper()
		s.java.must("x", "lock", as("fenced", "counter")...)
		s.java.want(want, "x", "token", as("fenced", "counter")...)
	}
	release := func() { s.java.must("x", "unlock", as("fenced", "counter")...) }
	grant("1")
	grant("2")
	release()
	release()
	if ttl := s.rdb.PTTL(t.Context(), key).Val(); ttl != -1 {
		t.Errorf("the counter has the TTL %v, want none", ttl)
	}
	s.rdb.Set(t.Context(), key, "1700000000000000", 0)
	grant("1700000000000001")
	release()
	s.rdb.Del(t.Context(), key)
	grant("1")
	release()
}
