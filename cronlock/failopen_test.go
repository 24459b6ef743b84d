package cronlock_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// TestFullRedisOpensNothing: FailOpen is for a Redis that does not answer, not for one that refuses.
func TestFullRedisOpensNothing(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	r := newReplica(t, newClient(t, server.Client()), idle, cronlock.FailOpen(), cronlock.WithStartDeadline(2*time.Second))
	if err := server.Client().ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	r.fire(time.Now())
	r.expect(t, 0, cronlock.Refused)
}
