package core

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/lockscript"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

func TestPatienceOfAQuorum(t *testing.T) {
	t.Parallel()
	q := &quorum{keeper: &keeper{}}
	for ttl, want := range map[time.Duration]time.Duration{
		minTTL: 50 * time.Millisecond, 30 * time.Second: 300 * time.Millisecond, maxTTL: time.Second,
	} {
		if got := q.patience(ttl); got != want {
			t.Errorf("%v for a TTL of %v, want %v", got, ttl, want)
		}
	}
}

// TestRoundsBeforeTakeNothingOff: the time of a lease begins with the round that was won. Otherwise one that follows
// upon split votes would be returned with hardly any time left.
func TestRoundsBeforeTakeNothingOff(t *testing.T) {
	t.Parallel()
	var nodes []redis.UniversalClient
	for range 3 {
		nodes = append(nodes, redistest.Start(t).Client())
	}
	r, err := NewRedlock(nodes)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	h := &lockscript.Hold{Keys: lockscript.NewKeys("", "name"), TTL: time.Hour, Owner: "owner", Own: &rounds{lost: 8}}
	r.ids.Renew(h)
	began := r.now()
	a, err := r.quorum.Acquire(context.Background(), h)
	if err != nil || !a.Granted || a.SentAt.Sub(began) < time.Millisecond {
		t.Errorf("%+v, %v: counted from %v after the call", a, err, a.SentAt.Sub(began))
	}
}

// TestWhenAMajorityCouldBeFree: servers that have granted the lock need not be waited for, and those that are held for
// ever come last.
func TestWhenAMajorityCouldBeFree(t *testing.T) {
	t.Parallel()
	const endless = -time.Millisecond
	q := &quorum{nodes: make([]*redlockNode, 5), majority: 3}
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
