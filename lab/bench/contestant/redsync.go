package contestant

import (
	"context"
	"math"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

func redsyncs() Contestant {
	return Contestant{
		Name: "redsync", Family: "redsync", Module: "github.com/go-redsync/redsync/v4",
		Waits: true, Uncontended: true, Servers: 1,
		Sends: []string{"set", "evalsha", "eval"},
		Lacks: "waiters poll every 50 to 250 ms, and by default give up after 32 times, here never; no renewal, no loss signal, " +
			"no fencing token",
		Open: func(addrs []string) (Session, error) {
			rdb := connect(addrs[0])
			return sync{rdb: rdb, locks: redsync.New(goredis.NewPool(rdb))}, nil
		},
	}
}

type sync struct {
	rdb   *redis.Client
	locks *redsync.Redsync
}

func (s sync) Pair(ctx context.Context, name string) error { return pair(ctx, s, name) }

// Lock waits as long as ctx allows; by default it would give up after 32 attempts.
func (s sync) Lock(ctx context.Context, name string) (func(context.Context) error, error) {
	mutex := s.locks.NewMutex(name, redsync.WithExpiry(TTL), redsync.WithTries(math.MaxInt))
	if err := mutex.LockContext(ctx); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		_, err := mutex.UnlockContext(ctx)
		return err
	}, nil
}

func (s sync) Close() error { return s.rdb.Close() }
