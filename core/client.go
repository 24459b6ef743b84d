package core

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// Client makes locks on one Redis: a server, a Sentinel group or a Cluster. It renews all leases with one timer, and
// waits for all locks on one subscription. So make one per process and share it. A Client is safe for concurrent use.
type Client struct {
	handle
	*engine
	server *server
	mutex  script.Strategy // the same for all
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
	if config.nodeTimeout != 0 || config.lock.restartDelay != 0 {
		return nil, invalidOption("New: WithNodeTimeout and WithRestartDelay are for NewRedlock")
	}
	e := newEngine(config, []redis.UniversalClient{rdb}, drift)
	s := newServer(e, rdb)
	mutex := script.Mutex{Instance: s.Instance}
	c := &Client{engine: e, server: s, mutex: mutex}
	c.handle = seal.HandleOf(clientFacts{c})
	return c, nil
}

// isNil also finds a nil pointer of one of the client's types.
func isNil(rdb redis.UniversalClient) bool {
	return rdb == nil || reflect.ValueOf(rdb).Kind() == reflect.Pointer && reflect.ValueOf(rdb).IsNil()
}

// Close ends all leases with the cause [ErrClosed], releases their locks, and stops renewing and listening. Calls that
// wait return ErrClosed. Call Close after the work under the locks has ended: it cannot stop a holder that ignores its
// context.
//
// Close continues as long as Redis confirms releases and completions, and gives up a few seconds after the last one. If Redis
// does not answer, it does not wait for locks that have expired there, and those are no error.
// It sends a last command about [WithInstance], and waits for its answer too, for two seconds at most. Locks that it could
// not release then expire. A second Close waits for the first and returns nil. A hook must not call Close.
//
// It logs how many attempts are still running, with the digests of some: nobody records how they end, so the failure
// policy decides when their leases expire. Close also sends the completions that Redis has not confirmed. A completion
// that another running attempt keeps from its record is sent once more. What Close gives up is perhaps not recorded, so
// the next attempt may run what was done.
//
// The error is nil, the error of the first failed release, or one that says how many completions are not confirmed. It may
// be both, joined. Both are [ErrUnavailable] if Redis did not reply. The second is [ErrStale] if only other attempts keep
// the ends from their records. The error does not include a Lock that failed without a reply, and whose release was
// not confirmed either.
func (c *Client) Close() error {
	var err error
	c.engine.closed.Do(func() {
		err = errors.Join(c.engine.close(), c.server.endsNotConfirmed())
		c.server.close()
	})
	return err
}

// clientFacts gives adapters the facts of a client.
type clientFacts struct{ *Client }

// Facts implements [seal.Source].
func (c clientFacts) Facts() seal.Facts {
	return seal.Facts{Logger: c.logger, Hooks: &c.hooks, Instance: c.instance, NewOwner: newOwner, Client: c}
}

// TTL implements [seal.Client].
func (c clientFacts) TTL() time.Duration { return c.lock.ttl }

// adapterScripts has the *transport.Script of each source that an adapter has used.
var adapterScripts sync.Map

// Eval implements [seal.Client].
func (c clientFacts) Eval(ctx context.Context, source, kind, name string, args ...any) (any, error) {
	var reply any
	err := c.operateOn(ctx, kind+" of", name, func(k script.Keys) (err error) {
		known, ok := adapterScripts.Load(source)
		if !ok {
			known, _ = adapterScripts.LoadOrStore(source, transport.NewScript(source))
		}
		reply, err = c.server.Exec.Do(ctx, known.(*transport.Script), []string{k.Of(kind)}, args...)
		return err
	})
	return reply, err
}

// Together implements [seal.Client].
func (clientFacts) Together(ctx context.Context, n int, do func(ctx context.Context, i int, alone func()) error) []error {
	return transport.DoGrouped(ctx, n, func(ctx context.Context, i int) error {
		return do(ctx, i, func() { transport.LeaveGroup(ctx) })
	})
}
