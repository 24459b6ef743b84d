package redlock

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/lockscript"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// TestMissedReleasesEndWithTheirTTL: what a server that is down has missed does not grow with the time that it is down.
func TestMissedReleasesEndWithTheirTTL(t *testing.T) {
	t.Parallel()
	down := redistest.Start(t)
	v := quorumOf(t, down.Client(), redistest.Start(t).Client(), redistest.Start(t).Client()).nodes[0]
	down.Kill()
	p := v.pendingReleases()
	const each = 1000
	for i := range 2 * each {
		h := lockscript.Hold{Keys: lockscript.NewKeys("", "name"), TTL: time.Hour, Owner: "owner"}
		v.quorum.env.IDs.Renew(&h)
		if i%2 == 0 {
			h.TTL = 10 * time.Millisecond
		}
		v.releaseLater(h, lockscript.HeldByCaller)
	}
	redistest.Eventually(t, 20*time.Second, "the releases that are of no use to be dropped", func() bool {
		return p.Len() == each
	})
}
