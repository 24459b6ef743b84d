package contestant

import (
	"context"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// rueidislocks: one key is what its documentation recommends for one server, two of three is its default.
func rueidislocks() []Contestant {
	with := func(name string, majority int32) Contestant {
		return Contestant{
			Name: name, Family: "rueidislock", Module: "github.com/redis/rueidis",
			Waits: true, Uncontended: true, Servers: 1,
			Sends: []string{"evalsha", "eval"},
			Lacks: "no fencing token; waiters are woken in no order; expiry by the client's clock; the loss of a lease is " +
				"told up to one renewal interval late; by default an answer that takes longer than 20 ms counts as a refusal, " +
				"after which a caller can wait for ever for a message (with 512 goroutines it did), so here it may take a second",
			Open: func(addrs []string) (Session, error) { return openRueidislock(addrs[0], majority) },
		}
	}
	return []Contestant{with("rueidislock, 1 key", 1), with("rueidislock, 2 of 3 keys", 2)}
}

type rueidisLock struct{ locks rueidislock.Locker }

func openRueidislock(addr string, majority int32) (Session, error) {
	locks, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{addr}},
		KeyMajority:  majority, KeyValidity: TTL,
		NoLoopTracking: true, // recommended from Redis 7.0.5 on
		TryNextAfter:   time.Second,
	})
	return rueidisLock{locks}, err
}

func (s rueidisLock) Pair(ctx context.Context, name string) error {
	_, cancel, err := s.locks.WithContext(ctx, name)
	if err != nil {
		return err
	}
	cancel() // returns when the keys are gone
	return nil
}

func (s rueidisLock) Lock(ctx context.Context, name string) (func(context.Context) error, error) {
	_, cancel, err := s.locks.WithContext(ctx, name)
	if err != nil {
		return nil, err
	}
	return func(context.Context) error { cancel(); return nil }, nil
}

func (s rueidisLock) Close() error { s.locks.Close(); return nil }
