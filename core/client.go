package core

import (
	"errors"
	"reflect"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/lockscript"
)

// Client makes locks on one Redis: a server, a Sentinel group or a Cluster. It renews all leases with one timer, and
// waits for all locks on one subscription. So make one per process and share it. A Client is safe for concurrent use.
type Client struct {
	*keeper
	server *server
	mutex  lockscript.Strategy // the same for all
}

// New returns a client for rdb. The caller closes rdb, after the Client. New does no I/O. It fails with
// [ErrInvalidOption] if rdb is nil or a [redis.Ring], or if an option has an invalid value. A Ring has several servers
// and no replacement for a server that fails: use a [redis.ClusterClient], or the servers by themselves with
// [NewRedlock].
//
// Commands of locks wait in rdb's connection pool like all others. Give locks a go-redis client of their own if the
// application keeps the pool busy, for instance with blocking commands.
func New(rdb redis.UniversalClient, opts ...Option) (*Client, error) {
	if isNil(rdb) {
		return nil, invalidOption("New: the Redis client is nil")
	}
	if _, ring := rdb.(*redis.Ring); ring {
		return nil, invalidOption("New: a *redis.Ring cannot keep locks: it spreads keys over servers that do not replace each other")
	}
	config := newClientConfig(opts)
	if err := errors.Join(config.lock.check([]redis.UniversalClient{rdb}), checkPrefix(config.prefix)); err != nil {
		return nil, err
	}
	if config.nodeTimeout != 0 || config.restartDelay != 0 {
		return nil, invalidOption("New: WithNodeTimeout and WithRestartDelay are for NewRedlock")
	}
	k := newKeeper(config, []redis.UniversalClient{rdb}, drift)
	s := newServer(k, rdb)
	return &Client{keeper: k, server: s, mutex: lockscript.Mutex{OneRedis: lockscript.OneRedis{Instance: s.Instance}}}, nil
}

// isNil also finds a nil pointer of one of the client's types.
func isNil(rdb redis.UniversalClient) bool {
	return rdb == nil || reflect.ValueOf(rdb).Kind() == reflect.Pointer && reflect.ValueOf(rdb).IsNil()
}

// Close ends all leases with the cause [ErrClosed], releases their locks, and stops renewing and listening. Calls that
// wait return ErrClosed. Call Close after the work under the locks has ended: it cannot stop a holder that ignores its
// context.
//
// Close continues as long as Redis answers, and gives up a few seconds after the last answer. Locks that it could not
// release then expire. The error is nil, or that of the first failed release. A second Close waits for the first and
// returns nil. A hook must not call Close.
func (c *Client) Close() error {
	first, err := c.keeper.close()
	if first {
		c.server.close()
	}
	return err
}
