package contestant

import (
	"context"

	"github.com/zeromicro/go-zero/core/logx"
	"github.com/zeromicro/go-zero/core/stores/redis"
)

func gozero() Contestant {
	return Contestant{
		Name: "go-zero", Family: "go-zero", Module: "github.com/zeromicro/go-zero",
		Uncontended: true, Servers: 1, Sends: []string{"evalsha", "eval"},
		Lacks: "cannot wait; no renewal, no loss signal, no fencing token; its pool cannot be set and has ten connections " +
			"per processor",
		Open: func(addrs []string) (Session, error) {
			logx.Disable()
			store, err := redis.NewRedis(redis.RedisConf{Host: addrs[0], Type: redis.NodeType})
			return zero{store}, err
		},
	}
}

type zero struct{ store *redis.Redis }

func (s zero) Pair(ctx context.Context, name string) error { return pair(ctx, s, name) }

func (s zero) Lock(ctx context.Context, name string) (func(context.Context) error, error) {
	lock := redis.NewRedisLock(s.store, name)
	lock.SetExpire(int(TTL.Seconds()))
	ok, err := lock.AcquireCtx(ctx)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, ErrTaken
	}
	return func(ctx context.Context) error {
		_, err := lock.ReleaseCtx(ctx)
		return err
	}, nil
}

// Close leaves the connections to the process: go-zero shares and keeps them.
func (zero) Close() error { return nil }
