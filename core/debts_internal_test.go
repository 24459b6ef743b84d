package core

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// TestDebtsEndWithTheirTTL: what a server that is down owes does not grow with the time that it is down.
func TestDebtsEndWithTheirTTL(t *testing.T) {
	t.Parallel()
	var nodes []redis.UniversalClient
	for range 3 {
		nodes = append(nodes, redistest.Start(t).Client())
	}
	down := redistest.Start(t)
	nodes[0] = down.Client()
	down.Kill()
	r, err := NewRedlock(nodes)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	d := r.quorum.voters[0].debts
	const each = 1000
	for i := range 2 * each {
		h := hold{keys: newKeys("", "name"), lockConfig: lockConfig{ttl: time.Hour, owner: "owner"}}
		r.rename(&h)
		if i%2 == 0 {
			h.ttl = minTTL
		}
		d.owe(h, used)
	}
	redistest.Eventually(t, 20*time.Second, "the debts that are over to be dropped", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.owed) == each
	})
}
