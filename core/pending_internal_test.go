package core

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/lockscript"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// TestMissedReleasesEndWithTheirTTL: what a server that is down has missed does not grow with the time that it is down.
func TestMissedReleasesEndWithTheirTTL(t *testing.T) {
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
	v := r.quorum.nodes[0]
	p := v.pendingReleases()
	const each = 1000
	for i := range 2 * each {
		h := lockscript.Hold{Keys: lockscript.NewKeys("", "name"), TTL: time.Hour, Owner: "owner"}
		r.ids.Renew(&h)
		if i%2 == 0 {
			h.TTL = minTTL
		}
		v.releaseLater(h, lockscript.HeldByCaller)
	}
	redistest.Eventually(t, 20*time.Second, "the releases that are of no use to be dropped", func() bool {
		return p.Len() == each
	})
}
