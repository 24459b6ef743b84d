package contestant

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
)

// HoldfastSends is what holdfast sends.
var HoldfastSends = []string{"evalsha", "eval", "subscribe", "unsubscribe", "ssubscribe", "sunsubscribe", "ping"}

func holdfasts() []Contestant {
	one := func(name string, strategy func(*core.Client) core.Strategy) Contestant {
		return Contestant{
			Name: "holdfast " + name, Family: "holdfast", Waits: true, Uncontended: true, Servers: 1, Sends: HoldfastSends,
			Open: func(addrs []string) (Session, error) { return openHoldfast(addrs[0], strategy) },
		}
	}
	redlock := one("Redlock, 3 servers", nil)
	redlock.Servers, redlock.Open = 3, openRedlock
	return []Contestant{
		one("Mutex", func(c *core.Client) core.Strategy { return c.Mutex }),
		one("Fair", func(c *core.Client) core.Strategy { return c.Fair }),
		one("Write", func(c *core.Client) core.Strategy { return c.Write }),
		redlock,
	}
}

type holdfast struct {
	strategy core.Strategy
	close    func() error
	rdbs     []redis.UniversalClient
}

func openHoldfast(addr string, strategy func(*core.Client) core.Strategy) (Session, error) {
	rdb := connect(addr)
	locks, err := core.New(rdb, core.WithTTL(TTL))
	if err != nil {
		return nil, err
	}
	return holdfast{strategy: strategy(locks), close: locks.Close, rdbs: []redis.UniversalClient{rdb}}, nil
}

func openRedlock(addrs []string) (Session, error) {
	var rdbs []redis.UniversalClient
	for _, addr := range addrs {
		rdbs = append(rdbs, connect(addr))
	}
	locks, err := core.NewRedlock(rdbs, core.WithTTL(TTL))
	if err != nil {
		return nil, err
	}
	return holdfast{strategy: locks.Mutex, close: locks.Close, rdbs: rdbs}, nil
}

func (h holdfast) Pair(ctx context.Context, name string) error {
	lease, err := h.strategy(name).Lock(ctx)
	if err != nil {
		return err
	}
	return lease.Unlock(ctx)
}

func (h holdfast) Lock(ctx context.Context, name string) (func(context.Context) error, error) {
	lease, err := h.strategy(name).Lock(ctx)
	if err != nil {
		return nil, err
	}
	return lease.Unlock, nil
}

func (h holdfast) Close() error {
	err := h.close()
	for _, rdb := range h.rdbs {
		_ = rdb.Close() // nothing is in flight
	}
	return err
}
