package quorum

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/script"
)

// TestNodeTimeoutFollowsTheTTL: servers have time even if all of them are slow, but do not use up a short lease.
func TestNodeTimeoutFollowsTheTTL(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	q := &Strategy{env: &Environment{}}
	for ttl, want := range map[time.Duration]time.Duration{
		0: 300 * ms, ms: 50 * ms, 100 * ms: 50 * ms, 400 * ms: 100 * ms, time.Second: 250 * ms, 2 * time.Second: 300 * ms,
		30 * time.Second: 300 * ms, time.Minute: 600 * ms, 365 * 24 * time.Hour: time.Second,
	} {
		if got := q.nodeTimeout(ttl); got != want {
			t.Errorf("%v for a TTL of %v, want %v", got, ttl, want)
		}
	}
	q.env.NodeTimeout = 7 * ms
	if got := q.nodeTimeout(time.Hour); got != 7*ms {
		t.Errorf("%v, although it was set to 7ms", got)
	}
}

// TestRoundsBeforeTakeNothingOff: the time of a lease begins with the round that was won. Otherwise one that follows
// upon split votes would be returned with hardly any time left.
func TestRoundsBeforeTakeNothingOff(t *testing.T) {
	t.Parallel()
	q := startQuorum(t)
	h := &script.Hold{Keys: script.NewKeys("", "name"), TTL: time.Hour, Owner: "owner", History: script.History{Rounds: script.Rounds{Lost: 8}}}
	q.env.IDs.Renew(h)
	began := q.env.Now()
	a, err := q.Acquire(context.Background(), h, script.Wanted{})
	if err != nil || !a.Granted || a.SentAt.Sub(began) < time.Millisecond {
		t.Errorf("%+v, %v: counted from %v after the call", a, err, a.SentAt.Sub(began))
	}
}

// TestWhenAMajorityCouldBeFree: servers that have granted the lock need not be waited for, and those that are held for
// ever come last.
func TestWhenAMajorityCouldBeFree(t *testing.T) {
	t.Parallel()
	const endless = -time.Millisecond
	q := &Strategy{nodes: make([]*node, 5), majority: 3}
	for _, c := range []struct {
		granted int
		lefts   []time.Duration
		want    time.Duration
	}{
		{0, []time.Duration{5, 1, 4, 2, 3}, 3},
		{1, []time.Duration{5, 1, 4, 2}, 2},
		{2, []time.Duration{5, endless, 4}, 4},
		{0, []time.Duration{endless, 1, endless, 2, 3}, 3},
		{0, []time.Duration{endless, 1, endless, 2, endless}, endless},
		{0, []time.Duration{2, 1}, 2},
	} {
		b := &voteRound{quorum: q, granted: c.granted, holderTTLs: c.lefts}
		if got := b.holderTTL(); got != c.want {
			t.Errorf("%d granted, others held for %v: %v, want %v", c.granted, c.lefts, got, c.want)
		}
	}
}
