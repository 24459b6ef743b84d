//go:build unix

package interop_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestUnsharded: Redisson before 3.22 does not listen in shards. It is woken if the Redis user of the Go processes may
// not announce and listen there, as docs/redisson.md advises.
func TestUnsharded(t *testing.T) {
	t.Parallel()
	version := versions(t)[0]
	c := testkit.StartCluster(t, 3)
	p := inCluster(t, c)
	java := p.java(t, version, long, "sharded", "OFF")
	for _, s := range c.Servers() {
		err := s.Client().ACLSetUser(t.Context(), "default", "-spublish", "-ssubscribe", "-sunsubscribe").Err()
		if err != nil {
			t.Fatal(err)
		}
	}
	golang := p.golang(t, long)
	there, back := passOn(t, p, java, golang, 10)
	t.Logf("Java to Go: %s; back: %s", spread(there), spread(back))
	if median(there) > long/3 || median(back) > long/3 {
		t.Error("waiters are not woken")
	}
}
