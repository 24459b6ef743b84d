package permits

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
)

// HoldfastName is the name of [Holdfast].
const HoldfastName = "holdfast Semaphore"

// Connections is the size of the pools that can be set, so that 64 callers do not wait for connections.
const Connections = 64

// Holdfast is [core.Client.Semaphore].
func Holdfast() Contestant {
	return Contestant{Name: HoldfastName, Sends: []string{"evalsha", "eval"}, Open: openHoldfast}
}

type holdfast struct {
	rdb       *redis.Client
	locks     *core.Client
	semaphore *core.Lock
}

func openHoldfast(c Config) (Process, error) {
	rdb := redis.NewClient(&redis.Options{Addr: c.Addr, PoolSize: Connections})
	quiet := core.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))
	locks, err := core.New(rdb, core.WithTTL(c.TTL), quiet)
	if err != nil {
		return nil, errors.Join(err, rdb.Close())
	}
	return holdfast{rdb, locks, locks.Semaphore(c.Name, c.N)}, nil
}

func (h holdfast) Try(ctx context.Context, _ int) (Permit, error) {
	lease, err := h.semaphore.TryLock(ctx)
	if errors.Is(err, core.ErrNotAcquired) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return leased{lease}, nil
}

func (h holdfast) Acquire(ctx context.Context, _ int) (Permit, error) {
	lease, err := h.semaphore.Lock(ctx)
	if err != nil {
		return nil, err
	}
	return leased{lease}, nil
}

func (h holdfast) Close() error { return errors.Join(h.locks.Close(), h.rdb.Close()) }

type leased struct{ *core.Lease }

// Valid compares with the clock too: the timer that ends the context may be late on a busy machine.
func (l leased) Valid() bool { return l.Context().Err() == nil && time.Now().Before(l.ValidUntil()) }

func (l leased) Release(ctx context.Context) error { return l.Unlock(ctx) }
