package election

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// Recipe is the usual election over Redis by hand: SET NX PX with the ID of the process, a renewal by the leader every third
// of the TTL, and a poll by the other candidates, so many times in a TTL. Terms are a counter, which the winner increments.
// Each command has a third of the TTL, and a leader whose renewal fails stops at once. If bounded is false, go-redis has
// its default options: it then ignores the deadline of a context while it waits three seconds for a reply.
func Recipe(name string, polls int, bounded bool) Contestant {
	return Contestant{Name: name, Sends: []string{"set", "evalsha", "eval", "incr"}, Open: func(c Config) (Candidate, error) {
		rdb := redis.NewClient(&redis.Options{Addr: c.Addr, ContextTimeoutEnabled: bounded})
		return &recipe{rdb, c.Name, uuid.NewString(), c.TTL, c.TTL / time.Duration(polls)}, nil
	}}
}

// All returns every contestant, in the order of the tables.
func All() []Contestant {
	return []Contestant{
		Holdfast(),
		Recipe("by hand, asks every TTL/10", 10, true),
		Recipe("by hand, asks every TTL/3", 3, true),
		Recipe("by hand, TTL/10, go-redis at its defaults", 10, false),
	}
}

var (
	renewScript = redis.NewScript(
		`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("PEXPIRE", KEYS[1], ARGV[2]) end return 0`)
	resignScript = redis.NewScript(
		`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0`)
)

type recipe struct {
	rdb       *redis.Client
	key, id   string
	ttl, poll time.Duration
}

func (r *recipe) Campaign(ctx context.Context) (Lead, error) {
	for {
		if l := r.try(ctx); l != nil {
			return l, nil
		}
		select {
		case <-time.After(r.poll):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// try returns nil if another process leads, or Redis does not reply.
func (r *recipe) try(ctx context.Context) Lead {
	ctx, cancel := context.WithTimeout(ctx, r.ttl/3)
	defer cancel()
	if won, err := r.rdb.SetNX(ctx, r.key, r.id, r.ttl).Result(); err != nil || !won {
		return nil
	}
	number, err := r.rdb.Incr(ctx, r.key+":term").Result()
	if err != nil {
		return nil // the key expires
	}
	l := &recipeLead{recipe: r, term: number}
	var renewing context.Context
	renewing, l.stop = context.WithCancel(context.Background())
	l.leads.Store(true)
	go l.renew(renewing)
	return l
}

func (r *recipe) Close() error { return r.rdb.Close() }

type recipeLead struct {
	*recipe
	term  int64
	leads atomic.Bool
	stop  context.CancelFunc
}

// renew stops the leader when a renewal fails.
func (l *recipeLead) renew(ctx context.Context) {
	defer l.leads.Store(false)
	ticks := time.NewTicker(l.ttl / 3)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
		answer, cancel := context.WithTimeout(ctx, l.ttl/3)
		held, err := renewScript.Run(answer, l.rdb, []string{l.key}, l.id, l.ttl.Milliseconds()).Bool()
		cancel()
		if err != nil || !held {
			return
		}
	}
}

func (l *recipeLead) Term() int64 { return l.term }
func (l *recipeLead) Valid() bool { return l.leads.Load() }

func (l *recipeLead) Resign(ctx context.Context) error {
	l.leads.Store(false)
	l.stop()
	ctx, cancel := context.WithTimeout(ctx, l.ttl/3)
	defer cancel()
	return resignScript.Run(ctx, l.rdb, []string{l.key}, l.id).Err()
}
