package permits_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/lab/permits"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

// counter is a baseline: it counts with INCR and DECR, and has neither a TTL nor names for its permits.
func counter() permits.Contestant {
	return permits.Contestant{Name: "counter", Sends: []string{"incr", "decr"}, Open: func(c permits.Config) (permits.Process, error) {
		return &counting{redis.NewClient(&redis.Options{Addr: c.Addr}), c.Name, int64(c.N)}, nil
	}}
}

type counting struct {
	rdb  *redis.Client
	name string
	n    int64
}

func (c *counting) Try(ctx context.Context, _ int) (permits.Permit, error) {
	used, err := c.rdb.Incr(ctx, c.name).Result()
	if err != nil {
		return nil, err
	}
	if used > c.n {
		return nil, c.rdb.Decr(ctx, c.name).Err()
	}
	return &counted{c}, nil
}

func (c *counting) Acquire(ctx context.Context, caller int) (permits.Permit, error) {
	for ctx.Err() == nil {
		if p, err := c.Try(ctx, caller); p != nil || err != nil {
			return p, err
		}
	}
	return nil, ctx.Err()
}

func (c *counting) Close() error { return c.rdb.Close() }

type counted struct{ *counting }

func (c *counted) Valid() bool                       { return true }
func (c *counted) Release(ctx context.Context) error { return c.rdb.Decr(ctx, c.name).Err() }

// TestPlays: a semaphore of holdfast neither loses nor over-issues a permit, but by a server that forgets. The baseline
// fails each play in the way that is known of counters, which shows that the referee counts.
func TestPlays(t *testing.T) {
	t.Parallel()
	known := map[string]permits.Outcome{ // of the counter
		"holder of 2 crashes":                         {Short: 2, Lost: 2},
		"reply to an acquire lost, permits free":      {Short: 1, Lost: 1},
		"reply to an acquire of the last permit lost": {Short: 1, Lost: 1},
		"reply to a release lost":                     {Over: 1},
		"release arrives after the TTL":               {}, // it waits for the permit, which has no TTL
		"release arrives when its caller holds again": {Over: 1},
		"Redis restarts, with an append-only file":    {},
		"Redis restarts empty":                        {Over: permits.N},
	}
	for _, p := range permits.Plays() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			o, err := p.Run(t.Context(), t, permits.Holdfast())
			if err != nil || o.Lost != 0 || o.Over > 0 && p.Name != "Redis restarts empty" {
				t.Errorf("holdfast: %v, %v", o, err)
			}
			o, err = p.Run(t.Context(), t, counter())
			if want := known[p.Name]; err != nil || o.Over < want.Over || o.Lost != want.Lost || o.Short < want.Short {
				t.Errorf("counter: %+v, %v, want %+v", o, err, want)
			}
		})
	}
}

// TestContest: it counts all grants, and a caller that never gets a permit has waited for the whole contest.
func TestContest(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t, testkit.TCP())
	p, err := permits.Holdfast().Open(permits.Config{Addr: server.Addr(), Name: "contest", N: 1, TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	held, err := p.Try(t.Context(), 0)
	if err != nil || held == nil {
		t.Fatalf("%v, %v", held, err)
	}
	c := permits.Contest{Callers: 2, Length: 100 * time.Millisecond}
	got, err := c.Run(t.Context(), []permits.Process{p})
	if err != nil || got.Grants != 0 || len(got.Waits) != 2 || min(got.Waits[0], got.Waits[1]) < c.Length/2 {
		t.Errorf("nothing was free: %+v, %v", got, err)
	}
	if err := held.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err = c.Run(t.Context(), []permits.Process{p}); err != nil || got.Grants == 0 || len(got.Waits) < got.Grants {
		t.Errorf("free: %d grants, %d waits, %v", got.Grants, len(got.Waits), err)
	}
}
