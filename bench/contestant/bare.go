package contestant

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/luasource"
)

// bares send the two scripts of a Mutex with nothing around them: no renewal, no waiting, no loss signal.
func bares() []Contestant {
	pipelined := func(rdb *redis.Client) (redis.Scripter, error) { return rdb.AutoPipeline() }
	return []Contestant{
		{
			Name: "bare scripts", Family: "bare", Limit: true, Uncontended: true, Servers: 1,
			Sends: []string{"evalsha"}, Open: func(addrs []string) (Session, error) { return OpenBare(addrs[0]) },
		},
		{
			Name: "bare scripts, autopipeline", Family: "bare", Limit: true, Uncontended: true, Servers: 1,
			Sends: []string{"evalsha"}, Open: func(addrs []string) (Session, error) { return openBare(addrs[0], pipelined) },
		},
	}
}

type bare struct {
	rdb              *redis.Client
	through          redis.Scripter
	acquire, release *redis.Script
	client           string // no id is used twice, see acquire.lua
	last             *atomic.Int64
}

// OpenBare connects the bare scripts through a plain client of go-redis.
func OpenBare(addr string) (Session, error) {
	return openBare(addr, func(rdb *redis.Client) (redis.Scripter, error) { return rdb, nil })
}

func openBare(addr string, through func(*redis.Client) (redis.Scripter, error)) (Session, error) {
	acquire := luasource.Script("acquire_fast", "mutex_common", "acquire")
	release := luasource.Script("publish", "wake_next", "release")
	b := bare{rdb: connect(addr), acquire: acquire, release: release, client: uuid.NewString(), last: new(atomic.Int64)}
	for _, s := range []*redis.Script{acquire, release} {
		if err := s.Load(context.Background(), b.rdb).Err(); err != nil {
			return nil, fmt.Errorf("load a script: %w", err)
		}
	}
	var err error
	b.through, err = through(b.rdb)
	return b, err
}

// hold is what the scripts need to know of one pair.
type hold struct{ lock, tag, id, released string }

func (b bare) hold(name string) hold {
	h := hold{lock: "lock:" + name, tag: ":{lock:" + name + "}"}
	h.id = b.client + ":" + strconv.FormatInt(b.last.Add(1), 10)
	h.released = "holdfast:released" + h.tag + ":" + h.id
	return h
}

func (b bare) enter(ctx context.Context, h hold) error {
	const remembered = 2 * 60 * 60 * 1000
	reply, err := b.acquire.EvalSha(ctx, b.through, []string{h.lock, "holdfast:token" + h.tag, h.released, "holdfast:waiting_clients" + h.tag},
		h.id, h.id, TTL.Milliseconds(), remembered, 0, 0).Slice()
	if err != nil {
		return err
	}
	if reply[0] != int64(1) {
		return ErrTaken
	}
	return nil
}

func (b bare) leave(ctx context.Context, h hold) error {
	return b.release.EvalSha(ctx, b.through, []string{h.lock, h.released, "holdfast:waiting_clients" + h.tag},
		h.id, h.id, 15000, 0, "PUBLISH").Err()
}

func (b bare) Pair(ctx context.Context, name string) error {
	h := b.hold(name)
	if err := b.enter(ctx, h); err != nil {
		return err
	}
	return b.leave(ctx, h)
}

func (b bare) Lock(ctx context.Context, name string) (func(context.Context) error, error) {
	h := b.hold(name)
	if err := b.enter(ctx, h); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return b.leave(ctx, h) }, nil
}

func (b bare) Close() error { return b.rdb.Close() }
