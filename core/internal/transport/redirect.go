package transport

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// withTimeout returns a view of rdb with another read timeout. It uses the connection pool of rdb, and the hooks that
// rdb has now.
//
// Why a [redis.Conn]: the copies that [redis.Client.WithTimeout] makes have no hooks, but a Conn has those of its
// client. The innermost hook of this Conn sends every command through such a copy. So the Conn itself never takes a
// connection from the pool.
func withTimeout(rdb *redis.Client, timeout time.Duration) *redis.Conn {
	conn := rdb.Conn()
	conn.AddHook(redirectHook{rdb.WithTimeout(timeout)})
	return conn
}

// redirectHook is a [redis.Hook] that sends commands through another client. It has to be the last hook that is added, because
// the hooks behind it are not called.
type redirectHook struct{ target *redis.Client }

// DialHook changes nothing, because the client of the hook never dials.
func (redirectHook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook sends a command through the target.
func (h redirectHook) ProcessHook(redis.ProcessHook) redis.ProcessHook { return h.target.Process }

// ProcessPipelineHook sends a pipeline through the target.
func (h redirectHook) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		pipe := h.target.Pipeline()
		if err := pipe.BatchProcess(ctx, cmds...); err != nil {
			return err
		}
		_, err := pipe.Exec(ctx)
		return err
	}
}
