package core

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// Client makes locks on one Redis: a server, a Sentinel group or a Cluster. It renews all leases with one timer
// and waits for all locks on one subscription, so make one per process and share it; it is safe for concurrent
// use.
type Client struct {
	clientConfig
	id      string // of this client, first part of its owners' names
	counter atomic.Uint64
	now     clock

	exec    *executor
	renewer *renewer
	queue   *queue
	listen  *listeners
	beats   *beats

	tasks *tasks
	base  context.Context // of work in the background; ends when Close has waited long enough
	stop  context.CancelFunc

	unheard sync.Once // PUBLISH is refused
	deaf    sync.Once // SUBSCRIBE is refused
	failing atomic.Bool
}

// New returns a client for rdb, which stays the caller's to close, after the Client. It does no I/O. Fails with
// [ErrInvalidOption] if rdb is nil or an option has an invalid value.
//
// The commands of locks wait in rdb's connection pool like all others: give locks a go-redis client of their
// own if the application keeps the pool busy, with blocking commands for instance.
func New(rdb redis.UniversalClient, opts ...Option) (*Client, error) {
	if rdb == nil || reflect.ValueOf(rdb).Kind() == reflect.Pointer && reflect.ValueOf(rdb).IsNil() {
		return nil, invalidOption("New: the Redis client is nil")
	}
	config := newClientConfig(opts)
	if err := errors.Join(config.lock.err, checkPrefix(config.prefix)); err != nil {
		return nil, err
	}
	c := &Client{
		clientConfig: config,
		id:           uuid.NewString(),
		now:          systemClock,
		queue:        newQueue(),
		tasks:        newTasks(),
	}
	c.base, c.stop = context.WithCancel(context.Background())
	c.exec = newExecutor(rdb, c.now, c.base.Done())
	c.listen = newListeners(rdb, func(err error) {
		c.warnOnce(&c.deaf, "Redis does not let this user subscribe: waiters learn of releases by polling only",
			"error", err)
	})
	c.beats = newBeats(c.exec, c.now)
	c.renewer = newRenewer(c.now)
	c.renewer.onLost = c.lost
	c.renewer.onTry = c.renewed
	return c, nil
}

// Close ends all leases with the cause [ErrClosed], releases their locks, and stops renewing and listening.
// Calls that wait return [ErrClosed]. Close after the work under the locks has ended: it cannot stop a holder
// that does not heed its context. It returns within a few seconds even if Redis does not answer; what could
// not be released then frees itself after its TTL. The error is nil, or that of the first failed release.
// Closing again waits for the first Close and returns nil. It must not be called from a hook.
func (c *Client) Close() error {
	if !c.tasks.close() {
		<-c.tasks.resting
		return nil
	}
	timer := time.AfterFunc(releaseTimeout, c.stop)
	err := c.releaseAll(c.renewer.close())
	c.tasks.end()
	<-c.tasks.resting
	timer.Stop()
	c.stop()
	c.listen.close(releaseTimeout)
	return err
}

// releaseAll ends leases side by side; the executor makes batches of it.
func (c *Client) releaseAll(leases []*Lease) error {
	errs := make(chan error, len(leases))
	for _, l := range leases {
		l.cancel(ErrClosed)
		go func() {
			errs <- insist(c.base, func(ctx context.Context) error {
				_, err := l.protocol.release(ctx, &l.hold, used)
				return err
			})
		}()
	}
	var first error
	for range leases {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return first
}

// background runs work that outlives its caller but not the client.
func (c *Client) background(work func(ctx context.Context)) {
	if !c.tasks.join() {
		return
	}
	go func() {
		defer c.tasks.end()
		work(c.base)
	}()
}

// lost ends a lease that was not unlocked. Its hold may still be in Redis, if the answer to a renewal was late or
// lost, so it is taken out; except after WithMaxHold, when the rest of the TTL is the holder's time to stop.
func (c *Client) lost(l *Lease, cause error) {
	l.cancel(cause)
	if !errors.Is(cause, errHeldTooLong) {
		c.giveUp(l.protocol, &l.hold, used)
	}
	c.report(l, cause)
}
