//go:build unix

package interop_test

import (
	"strconv"
	"testing"
)

// TestTokens: tokens of holdfast grow whatever Java has held between, and those of RFencedLock are a series of their own,
// in which grants to Go do not count.
func TestTokens(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, version string) {
		p := single(t)
		java, golang := p.java(t, version, long), p.golang(t, long)
		last := int64(0)
		for i, kind := range []string{"lock", "fair", "fenced", "fenced", "read", "write"} {
			java.must("x", "lock", as(kind, "name")...)
			if kind == "fenced" {
				java.want(strconv.Itoa(i-1), "x", "token", as(kind, "name")...)
			}
			if holders := inspect(t, p, "name").Holders; len(holders) != 1 || holders[0].Token != 0 {
				t.Errorf("Java's %s has holders %+v, want one without a token", kind, holders)
			}
			java.must("x", "unlock", as(kind, "name")...)
			golang.must("x", "lock", lock("name")...)
			token, err := strconv.ParseInt(golang.must("x", "token", lock("name")...).Value, 10, 64)
			if err != nil || token <= last {
				t.Errorf("token %d, %v, came after %d", token, err, last)
			}
			last = token
			golang.must("x", "unlock", lock("name")...)
		}
		if got := p.rdb.Get(t.Context(), "redisson_lock_token:{name}").Val(); got != "2" {
			t.Errorf("Redisson's last token is %s, want 2", got)
		}
	})
}
