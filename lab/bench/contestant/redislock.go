package contestant

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

// redislocks differ in how often a waiter asks: the library leaves that to the caller.
func redislocks() []Contestant {
	every := func(name string, backoff time.Duration) Contestant {
		return Contestant{
			Name: name, Family: "redislock", Module: "github.com/bsm/redislock",
			Waits: true, Servers: 1, Sends: []string{"evalsha", "eval"},
			Lacks: "waiters poll, as often as they choose; no renewal, no loss signal, no fencing token",
			Open: func(addrs []string) (Session, error) {
				rdb := connect(addrs[0])
				return bsm{rdb: rdb, locks: redislock.New(rdb), backoff: backoff}, nil
			},
		}
	}
	slow, fast := every("redislock", 100*time.Millisecond), every("redislock, asks every 5 ms", 5*time.Millisecond)
	slow.Uncontended = true
	return []Contestant{slow, fast}
}

type bsm struct {
	rdb     *redis.Client
	locks   *redislock.Client
	backoff time.Duration
}

func (s bsm) Pair(ctx context.Context, name string) error {
	lock, err := s.locks.Obtain(ctx, name, TTL, nil)
	if err != nil {
		return err
	}
	return lock.Release(ctx)
}

func (s bsm) Lock(ctx context.Context, name string) (func(context.Context) error, error) {
	options := &redislock.Options{RetryStrategy: redislock.LinearBackoff(s.backoff)}
	for {
		lock, err := s.locks.Obtain(ctx, name, TTL, options)
		// Without a deadline it gives up after one TTL.
		if errors.Is(err, redislock.ErrNotObtained) && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return nil, err
		}
		return lock.Release, nil
	}
}

func (s bsm) Close() error { return s.rdb.Close() }
