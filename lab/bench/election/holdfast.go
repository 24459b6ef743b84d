package election

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
)

// Holdfast is [core.Client.Election].
func Holdfast() Contestant {
	return Contestant{
		Name: "holdfast Election", Sends: []string{"evalsha", "eval", "subscribe", "ping"}, Open: openHoldfast,
	}
}

type holdfast struct {
	rdb      *redis.Client
	locks    *core.Client
	election *core.Election
}

func openHoldfast(c Config) (Candidate, error) {
	rdb := redis.NewClient(&redis.Options{Addr: c.Addr})
	quiet := core.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))
	locks, err := core.New(rdb, core.WithTTL(c.TTL), quiet)
	if err != nil {
		return nil, errors.Join(err, rdb.Close())
	}
	return holdfast{rdb, locks, locks.Election(c.Name)}, nil
}

func (h holdfast) Campaign(ctx context.Context) (Lead, error) {
	for {
		l, err := h.election.Campaign(ctx)
		if err == nil {
			return term{l, h.election}, nil
		}
		if ctx.Err() != nil || !errors.Is(err, core.ErrUnavailable) {
			return nil, err
		}
	}
}

func (h holdfast) Close() error { return errors.Join(h.locks.Close(), h.rdb.Close()) }

type term struct {
	*core.Leadership
	election *core.Election
}

// Valid compares with the clock too, as IsLeader does: the timer that ends the context may be late on a busy machine.
func (t term) Valid() bool {
	return t.Context().Err() == nil && t.election.IsLeader(context.Background()) == nil
}
