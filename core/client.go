package core

import (
	"errors"
	"reflect"

	"github.com/redis/go-redis/v9"
)

// Client makes locks on one Redis: a server, a Sentinel group or a Cluster. It renews all leases with one timer
// and waits for all locks on one subscription, so make one per process and share it; it is safe for concurrent
// use.
type Client struct {
	*keeper
	*server
	mutex protocol // the same for all
}

// New returns a client for rdb, which stays the caller's to close, after the Client. It does no I/O. Fails with
// [ErrInvalidOption] if rdb is nil or a [redis.Ring], or an option has an invalid value. A Ring has several servers and
// nothing that replaces one which fails: use a [redis.ClusterClient], or the servers by themselves with [NewRedlock].
//
// The commands of locks wait in rdb's connection pool like all others: give locks a go-redis client of their
// own if the application keeps the pool busy, with blocking commands for instance.
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
	return &Client{keeper: k, server: s, mutex: mutex{oneRedis: oneRedis{s}}}, nil
}

// isNil also finds a nil pointer of one of the client's types.
func isNil(rdb redis.UniversalClient) bool {
	return rdb == nil || reflect.ValueOf(rdb).Kind() == reflect.Pointer && reflect.ValueOf(rdb).IsNil()
}

// Close ends all leases with the cause [ErrClosed], releases their locks, and stops renewing and listening.
// Calls that wait return [ErrClosed]. Close after the work under the locks has ended: it cannot stop a holder
// that does not heed its context. It goes on for as long as Redis answers, and ends after a few seconds of silence; what
// could not be released then frees itself after its TTL. The error is nil, or that of the first failed release.
// Closing again waits for the first Close and returns nil. It must not be called from a hook.
func (c *Client) Close() error {
	first, err := c.keeper.close()
	if first {
		c.server.close()
	}
	return err
}
