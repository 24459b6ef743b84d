package election

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// Size is how many candidates an election has.
const Size = 5

// Resignations lets so many leaders resign, and returns how long each of them left the election without a leader. The first
// one only warms up.
func Resignations(ctx context.Context, t testing.TB, c Contestant, ttl time.Duration, times int) (took []time.Duration, err error) {
	g, err := newGroup(t, c, Size, ttl)
	if err != nil {
		return nil, err
	}
	defer g.close()
	leader, err := g.next(ctx, 1)
	for range times + 1 {
		if err != nil {
			return nil, err
		}
		if err := pause(ctx, rand.N(ttl/10)); err != nil {
			return nil, err
		}
		before := g.newest(leader)
		began, failure := g.resignation(ctx, before)
		if failure != nil {
			return nil, failure
		}
		if leader, err = g.next(ctx, 2); err == nil {
			took = append(took, leader.at.Sub(began))
			g.rejoin(before)
		}
	}
	return took[1:], err
}

// Crashes cuts so many leaders off, at random moments between two renewals, and returns how long it took until the next one
// led.
func Crashes(ctx context.Context, t testing.TB, c Contestant, ttl time.Duration, times int) (took []time.Duration, err error) {
	g, err := newGroup(t, c, Size, ttl)
	if err != nil {
		return nil, err
	}
	defer g.close()
	leader, err := g.next(ctx, 1)
	for range times {
		if err != nil {
			return nil, err
		}
		if err := pause(ctx, ttl/3+rand.N(ttl/3)); err != nil {
			return nil, err
		}
		crashed := g.members[g.newest(leader).who].relay
		began := time.Now()
		crashed.Drop(both)
		if leader, err = g.next(ctx, 2); err == nil {
			took = append(took, leader.at.Sub(began))
		}
		crashed.Heal()
	}
	return took, err
}

// Idle returns how many commands a second the candidates send while the leader does not change.
func Idle(ctx context.Context, t testing.TB, c Contestant, ttl, length time.Duration) (perSecond float64, err error) {
	g, err := newGroup(t, c, Size, ttl)
	if err != nil {
		return 0, err
	}
	defer g.close()
	if _, err := g.next(ctx, 1); err != nil {
		return 0, err
	}
	if err := pause(ctx, ttl); err != nil { // until all candidates have asked
		return 0, err
	}
	for range idleAttempts {
		began, before := time.Now(), g.commands(c)
		if err := pause(ctx, length); err != nil {
			return 0, err
		}
		sent, took := g.commands(c)-before, time.Since(began)
		if len(g.wins) == 0 {
			return float64(sent) / took.Seconds(), nil
		}
		g.newest(nil)
	}
	return 0, fmt.Errorf("%s: the leader has changed in each of %d attempts", c.Name, idleAttempts)
}

// idleAttempts is how often Idle begins again if the leader has changed.
const idleAttempts = 5

func (g *group) commands(c Contestant) (n int64) {
	stats := g.server.CommandStats()
	for _, name := range c.Sends {
		n += stats[name].Calls
	}
	return n
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
