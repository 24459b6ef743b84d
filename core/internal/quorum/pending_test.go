package quorum

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestMissedReleasesEndWithTheirTTL: what a server that is down has missed does not grow with the time that it is down.
func TestMissedReleasesEndWithTheirTTL(t *testing.T) {
	t.Parallel()
	down := testkit.Start(t)
	v := quorumOf(t, down.Client(), testkit.Start(t).Client(), testkit.Start(t).Client()).nodes[0]
	down.Kill()
	p := v.pendingReleases()
	const each = 1000
	for i := range 2 * each {
		h := script.Hold{Keys: script.NewKeys("", "name"), TTL: time.Hour, Owner: "owner"}
		v.quorum.env.IDs.Renew(&h)
		if i%2 == 0 {
			h.TTL = 10 * time.Millisecond
		}
		v.releaseLater(h, script.HeldByCaller)
	}
	testkit.Eventually(t, 20*time.Second, "the releases that are of no use to be dropped", func() bool {
		return p.Len() == each
	})
}

// TestTooManyMissedReleases: what a server has missed is bounded, and the user is told when the bound is reached.
func TestTooManyMissedReleases(t *testing.T) {
	t.Parallel()
	down := testkit.Start(t)
	q := quorumOf(t, down.Client(), testkit.Start(t).Client(), testkit.Start(t).Client())
	down.Pause()
	told := 0
	q.env.TooManyPending = func() { told++ }
	for range transport.MaxPending + 1000 {
		h := script.Hold{Keys: script.NewKeys("", "name"), TTL: time.Hour, Owner: "owner"}
		q.env.IDs.Renew(&h)
		q.nodes[0].releaseLater(h, script.NeverHeld)
	}
	if told < 900 { // up to a batch is in flight, and does not count
		t.Errorf("told %d times that there are too many", told)
	}
}

// TestReleaseOutlivesTheTTL: the release of a hold that no caller got is sent for longer than its TTL, because a server that
// was frozen begins the hold only when it runs again.
func TestReleaseOutlivesTheTTL(t *testing.T) {
	t.Parallel()
	frozen := testkit.Start(t)
	rdb := frozen.Client()
	v := quorumOf(t, rdb, testkit.Start(t).Client(), testkit.Start(t).Client()).nodes[0]
	frozen.Pause()
	held := script.Hold{Keys: script.NewKeys("", "held"), TTL: 10 * time.Millisecond, Owner: "owner"}
	never := script.Hold{Keys: script.NewKeys("", "never"), TTL: 10 * time.Millisecond, Owner: "owner"}
	for _, h := range []*script.Hold{&held, &never} {
		v.quorum.env.IDs.Renew(h)
	}
	v.releaseLater(never, script.NeverHeld)
	v.releaseLater(held, script.HeldByCaller)
	p := v.pendingReleases()
	testkit.Eventually(t, 20*time.Second, "the release of the expired hold to be dropped", func() bool { return p.Len() == 1 })

	frozen.Resume()
	testkit.Eventually(t, 20*time.Second, "the other release to be confirmed", func() bool { return p.Len() == 0 })
	late := never
	if a, err := v.Acquire(context.Background(), &late, script.Wanted{}); err != nil || a.Granted {
		t.Errorf("a request that arrives after its release: %+v, %v", a, err)
	}
}
