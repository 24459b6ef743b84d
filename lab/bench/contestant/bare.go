package contestant

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/lab/bench/shape"
)

// bares send the two scripts of a lock with nothing around them: no renewal, no waiting, no loss signal. The scripts are
// a Mutex's, to show what the library costs, and Redisson's ([shape.Redisson]), to show what the scripts cost.
func bares() (list []Contestant) {
	pipelined := func(rdb *redis.Client) (redis.Scripter, error) { return rdb.AutoPipeline() }
	for _, of := range []struct {
		name, family string
		shape        shape.Shape
	}{{"bare scripts", "bare", shape.Mutex()}, {shape.RedissonName, shape.RedissonName, shape.Redisson()}} {
		with := func(name string, through func(*redis.Client) (redis.Scripter, error)) Contestant {
			return Contestant{
				Name: name, Family: of.family, Limit: true, Uncontended: true, Servers: 1, Sends: []string{"evalsha"},
				Open: func(addrs []string) (Session, error) { return openBare(addrs[0], of.shape, through) },
			}
		}
		list = append(list, with(of.name, plain), with(of.name+", autopipeline", pipelined))
	}
	return list
}

type bare struct {
	rdb     *redis.Client
	through redis.Scripter
	shape   shape.Shape
}

// lastHold is the number of the last hold of this process: no number is used twice, because a script remembers released
// holds.
var lastHold atomic.Int64

// OpenBare connects the bare scripts of a Mutex through a plain client of go-redis.
func OpenBare(addr string) (Session, error) {
	return openBare(addr, shape.Mutex(), plain)
}

func plain(rdb *redis.Client) (redis.Scripter, error) { return rdb, nil }

func openBare(addr string, s shape.Shape, through func(*redis.Client) (redis.Scripter, error)) (b bare, err error) {
	b = bare{rdb: connect(addr), shape: s}
	if err := load(context.Background(), b.rdb, s); err != nil {
		return b, err
	}
	b.through, err = through(b.rdb)
	return b, err
}

// load loads the scripts of a shape into the server.
func load(ctx context.Context, rdb *redis.Client, s shape.Shape) error {
	for _, script := range s.Scripts {
		if err := script.Load(ctx, rdb).Err(); err != nil {
			return fmt.Errorf("load a script: %w", err)
		}
	}
	return nil
}

// enter returns the hold, and the reply to its lock.
func (b bare) enter(ctx context.Context, name string) (h *shape.Hold, reply any, err error) {
	h = &shape.Hold{Name: name, Number: lastHold.Add(1)}
	reply, err = b.shape.Lock(h).Run(ctx, b.through)
	if err == nil && !b.shape.Granted(reply) {
		err = ErrTaken
	}
	return h, reply, err
}

func (b bare) leave(ctx context.Context, h *shape.Hold, locked any) error {
	reply, err := b.shape.Release(h, locked, func(c shape.Command) (any, error) { return c.Run(ctx, b.through) })
	if err == nil && !b.shape.Released(reply) {
		err = fmt.Errorf("unlock: unexpected reply %v", reply)
	}
	return err
}

func (b bare) Pair(ctx context.Context, name string) error {
	h, reply, err := b.enter(ctx, name)
	if err != nil {
		return err
	}
	return b.leave(ctx, h, reply)
}

func (b bare) Lock(ctx context.Context, name string) (func(context.Context) error, error) {
	h, reply, err := b.enter(ctx, name)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return b.leave(ctx, h, reply) }, nil
}

func (b bare) Close() error { return b.rdb.Close() }
