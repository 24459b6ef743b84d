//go:build unix

package interop_test

import (
	"strconv"
	"testing"
)

// tokens: tokens of holdfast grow whatever Java has held between, and those of RFencedLock are a series of their own,
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
