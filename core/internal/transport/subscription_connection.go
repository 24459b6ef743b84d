package transport

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// pubsubConn is one pub/sub connection to a master. It ends with its first error. The next connection subscribes anew, and
// each confirmation notifies the subscribers, so that they ask Redis again.
type pubsubConn struct {
	master  *masterSubscription
	pubsub  *redis.PubSub
	sharded bool    // true if channels are subscribed with SSUBSCRIBE
	end     connEnd // set by the goroutine that reads

	overdue atomic.Bool // true if the connection was ended because it has left a channel unconfirmed
}

// connEnd is how a pubsubConn has ended.
type connEnd int

const (
	endUnsubscribed connEnd = iota // no channel was confirmed
	endBroken                      // at least one channel was confirmed
	endRefused                     // the server does not know the command, or the user may not use it
)

// newPubsubConn returns a connection that connects when it first subscribes.
func newPubsubConn(m *masterSubscription, sharded bool) *pubsubConn {
	rdb := m.subs.rdb
	if m.rdb != nil {
		rdb = m.rdb
	}
	return &pubsubConn{master: m, sharded: sharded, pubsub: rdb.Subscribe(context.Background())}
}

// serve receives messages until the connection fails, ctx ends, or no channel is left. It returns how the connection has
// ended, and leaves no goroutine.
func (c *pubsubConn) serve(ctx context.Context) connEnd {
	ctx, cancel := context.WithCancel(ctx)
	var both sync.WaitGroup
	both.Go(func() {
		defer c.master.subs.recovered()
		defer cancel()
		c.write(ctx)
	})
	both.Go(func() {
		defer c.master.subs.recovered()
		<-ctx.Done()
		_ = c.pubsub.Close() // ends the read in flight
	})
	defer both.Wait()
	defer cancel()
	if c.read(ctx); c.overdue.Load() {
		return endUnsubscribed // the next connection may be no better, so there is no hurry
	}
	return c.end
}

// write subscribes the channels that are not requested, and unsubscribes those that are idle. It returns when the connection
// fails or leaves a channel unconfirmed, ctx ends, or no channel is left.
func (c *pubsubConn) write(ctx context.Context) {
	ticker := time.NewTicker(pingInterval)
	defer ticker.Stop()
	for c.subscribe(ctx, c.master.takeUnsubscribed()) == nil {
		select {
		case <-ctx.Done():
			return
		case <-c.master.changed:
		case <-ticker.C:
			c.master.subs.reassignAll()
			c.master.checkUnheard()
			if c.master.overdue() {
				c.overdue.Store(true)
				return
			}
			idle, others := c.master.prune()
			if c.unsubscribe(ctx, idle) != nil || !others {
				return
			}
		}
	}
}

// subscribe sends SUBSCRIBE or SSUBSCRIBE. It does not wait for the confirmations.
func (c *pubsubConn) subscribe(ctx context.Context, channels []string) error {
	if !c.sharded {
		return sendAll(ctx, channels, c.pubsub.Subscribe)
	}
	return sendBySlot(ctx, channels, c.pubsub.SSubscribe)
}

// unsubscribe sends UNSUBSCRIBE or SUNSUBSCRIBE.
func (c *pubsubConn) unsubscribe(ctx context.Context, channels []string) error {
	if !c.sharded {
		return sendAll(ctx, channels, c.pubsub.Unsubscribe)
	}
	return sendBySlot(ctx, channels, c.pubsub.SUnsubscribe)
}

// sendAll sends one command for all channels. It does nothing if there are none.
func sendAll(ctx context.Context, channels []string, send func(context.Context, ...string) error) error {
	if len(channels) == 0 {
		return nil
	}
	return send(ctx, channels...)
}

// sendBySlot sends one command for the channels of each slot. Why: Redis refuses SSUBSCRIBE for channels of several slots.
func sendBySlot(ctx context.Context, channels []string, send func(context.Context, ...string) error) error {
	slots := make(map[uint16][]string)
	for _, channel := range channels {
		slots[Slot(channel)] = append(slots[Slot(channel)], channel)
	}
	for _, sameSlot := range slots {
		if err := send(ctx, sameSlot...); err != nil {
			return err
		}
	}
	return nil
}

// read dispatches messages until the connection fails or ctx ends. It pings a connection that is silent for a pingInterval,
// and returns if there is no answer within another one.
func (c *pubsubConn) read(ctx context.Context) {
	silent := 0
	for ctx.Err() == nil {
		message, err := c.pubsub.ReceiveTimeout(ctx, pingInterval)
		var timeout net.Error
		switch {
		case errors.As(err, &timeout) && timeout.Timeout() && silent == 0:
			silent++
			if c.pubsub.Ping(ctx) != nil {
				return
			}
			continue
		case servedElsewhere(err):
			c.master.resetRefused()
			c.master.subs.nodes.RequestRefresh()
			continue
		case err != nil:
			c.refused(err)
			return
		}
		silent = 0
		switch m := message.(type) {
		case *redis.Message:
			c.master.subs.dispatch(m.Channel, m.Payload)
		case *redis.Subscription:
			c.changed(m)
		}
	}
}

// servedElsewhere returns true if a channel was refused because another master, or none, owns its slot now.
func servedElsewhere(err error) bool {
	return err != nil && (redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "CLUSTERDOWN"))
}

// refused records an error that another try would not change: an unknown command, or a missing right. It does nothing for
// other errors. The client warns of it unless another command may still succeed, which is SUBSCRIBE instead of an unknown
// SSUBSCRIBE.
func (c *pubsubConn) refused(err error) {
	if Classify(err) != Failed && !RefusesUser(err) && !UnknownCommand(err) {
		return
	}
	c.end = endRefused
	if !c.sharded || redis.HasErrorPrefix(err, "NOPERM") {
		c.master.subs.warned.Store(true)
		c.master.subs.warn(readable(err), c.sharded)
	}
}

// changed records that a channel was subscribed or unsubscribed.
func (c *pubsubConn) changed(reply *redis.Subscription) {
	switch reply.Kind {
	case "subscribe", "ssubscribe":
		c.end = endBroken
		c.master.subs.confirm(c.master, reply.Channel)
	case "sunsubscribe":
		if c.master.unsubscribedByServer(reply.Channel) {
			c.master.subs.nodes.RequestRefresh()
		}
	}
}
