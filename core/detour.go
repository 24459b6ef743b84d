package core

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// withTimeout returns another way to a client's server, which waits for so long: on the same connections, and with the
// hooks that the client has now.
//
// The copies that go-redis makes have no hooks, but the single connections that it lends do. So this is such a
// connection with one hook more, innermost, that sends everything by a copy: the connection itself is never taken.
func withTimeout(rdb *redis.Client, limit time.Duration) *redis.Conn {
	conn := rdb.Conn()
	conn.AddHook(detour{rdb.WithTimeout(limit)})
	return conn
}

// detour is a hook that sends commands by another client.
type detour struct{ rdb *redis.Client }

func (detour) DialHook(next redis.DialHook) redis.DialHook { return next }

func (d detour) ProcessHook(redis.ProcessHook) redis.ProcessHook { return d.rdb.Process }

func (d detour) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		pipe := d.rdb.Pipeline()
		if err := pipe.BatchProcess(ctx, cmds...); err != nil {
			return err
		}
		_, err := pipe.Exec(ctx)
		return err
	}
}
