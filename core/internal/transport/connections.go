package transport

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
)

// learnInterval is how often it is checked whether the masters of a Cluster are known by now.
const learnInterval = 10 * time.Millisecond

// masterSubscription keeps a pub/sub connection to one master of a Cluster, or to Redis elsewhere, while any channel is
// assigned to it.
type masterSubscription struct {
	subs    *Subscriptions
	rdb     *redis.Client // nil without a Cluster, and for channels whose master is not known
	changed chan struct{} // holds one element if there may be channels to subscribe
}

// inCluster returns true if each channel belongs to a master. Then channels are subscribed with SSUBSCRIBE, unless the server
// refuses that.
func (m *masterSubscription) inCluster() bool { return m.subs.nodes.cluster != nil }

// run connects, and connects again after each failure. It returns when no channel is assigned any more.
func (m *masterSubscription) run() {
	ctx := m.subs.ctx
	sharded := m.inCluster()
	for !m.stopIfIdle(ctx) {
		if m.inCluster() && m.rdb == nil {
			keepalive.Pause(ctx, learnInterval, nil, nil)
			m.subs.reassignAll()
			continue
		}
		end := m.serve(ctx, sharded)
		m.disconnected()
		m.checkUnheard()
		if end != endRefused {
			m.subs.nodes.RequestRefresh() // the master may be down
		}
		switch {
		case end == endRefused && sharded:
			sharded = false // the next connection tries SUBSCRIBE
			continue
		case end == endBroken:
			keepalive.Pause(ctx, FirstRetryInterval+rand.N(10*FirstRetryInterval), nil, nil)
		default:
			keepalive.Pause(ctx, pingInterval/2+rand.N(pingInterval/2), nil, nil)
		}
		sharded = m.inCluster() // the refusal may have ended: an upgrade of the server, or a new right of the user
	}
}

// serve runs one connection. A panic of the user's client ends the connection, not the process.
func (m *masterSubscription) serve(ctx context.Context, sharded bool) (end connEnd) {
	defer m.subs.recovered()
	return newPubsubConn(m, sharded).serve(ctx)
}

// stopIfIdle removes the masterSubscription and returns true if no channel is assigned, or ctx has ended. If it returns
// true, the caller must end its goroutine. If it returns false, the masterSubscription stays.
func (m *masterSubscription) stopIfIdle(ctx context.Context) bool {
	m.subs.mu.Lock()
	defer m.subs.mu.Unlock()
	if ctx.Err() == nil && m.wantedLocked() {
		return false
	}
	delete(m.subs.masters, m.rdb)
	return true
}

// wantedLocked returns true if a channel is assigned to m. The caller must hold the mutex of subs.
func (m *masterSubscription) wantedLocked() bool {
	for _, ch := range m.subs.channels {
		if ch.assigned == m {
			return true
		}
	}
	return false
}

// disconnected records that the connection has ended, and with it all its subscriptions. Channels whose slot has moved are
// assigned to their new master.
func (m *masterSubscription) disconnected() {
	m.subs.mu.Lock()
	defer m.subs.mu.Unlock()
	for channel, ch := range m.subs.channels {
		if ch.assigned == m {
			ch.unsubscribedLocked()
			m.subs.assignLocked(channel, ch)
		}
	}
	keepalive.Signal(m.changed)
}

// takeUnsubscribed returns the channels to subscribe now, and marks them as requested.
func (m *masterSubscription) takeUnsubscribed() []string {
	m.subs.mu.Lock()
	defer m.subs.mu.Unlock()
	var channels []string
	for channel, ch := range m.subs.channels {
		if ch.assigned == m && ch.requested.IsZero() {
			ch.requested = time.Now()
			channels = append(channels, channel)
		}
	}
	return channels
}

// unsubscribedByServer records that a channel was unsubscribed. It returns true if the client had not asked for that: a
// master unsubscribes a channel when its slot moves to another master.
func (m *masterSubscription) unsubscribedByServer(channel string) bool {
	m.subs.mu.Lock()
	defer m.subs.mu.Unlock()
	ch := m.subs.channels[channel]
	if ch == nil || ch.assigned != m || !ch.subscribed.Load() {
		return false
	}
	ch.unsubscribedLocked()
	return true
}

// resetRefused marks the channels as not requested that are not confirmed. All of them, because the error of a master that does
// not own a slot does not name the channels that it refuses.
func (m *masterSubscription) resetRefused() {
	m.subs.mu.Lock()
	defer m.subs.mu.Unlock()
	for _, ch := range m.subs.channels {
		if ch.assigned == m && !ch.subscribed.Load() {
			ch.requested = time.Time{}
		}
	}
}

// overdue returns true if the present connection has left a channel unconfirmed for confirmTimeout.
func (m *masterSubscription) overdue() bool {
	m.subs.mu.Lock()
	defer m.subs.mu.Unlock()
	for _, ch := range m.subs.channels {
		if ch.assigned == m && !ch.subscribed.Load() && !ch.requested.IsZero() && time.Since(ch.requested) >= confirmTimeout {
			return true
		}
	}
	return false
}

// checkUnheard warns, once, of a channel with waiters that is not confirmed for unheardWarning although its server answers commands. In an
// outage it does not warn, because then the server answers nothing.
func (m *masterSubscription) checkUnheard() {
	if m.subs.warned.Load() || m.subs.Unconfirmed == nil || !m.unheard() {
		return
	}
	if !m.subs.warned.Swap(true) {
		m.subs.Unconfirmed()
	}
}

// unheard looks at the channels, and returns true if there is one to warn of.
func (m *masterSubscription) unheard() (found bool) {
	m.subs.mu.Lock()
	defer m.subs.mu.Unlock()
	for channel, ch := range m.subs.channels {
		if ch.assigned != m || ch.subscribed.Load() || len(ch.broadcast)+len(ch.addressed) == 0 {
			continue
		}
		found = ch.unheard.look(m.subs.nodes.answers(channel), time.Now()) || found
	}
	return found
}

// prune removes the channels that had no subscriber for more than maxIdleRounds calls, and returns them. It returns false
// for others if no channel is left. The caller must call it each pingInterval.
func (m *masterSubscription) prune() (idle []string, others bool) {
	m.subs.mu.Lock()
	defer m.subs.mu.Unlock()
	for channel, ch := range m.subs.channels {
		if ch.assigned != m || len(ch.broadcast)+len(ch.addressed) > 0 {
			continue
		}
		if ch.idle++; ch.idle > maxIdleRounds {
			delete(m.subs.channels, channel)
			idle = append(idle, channel)
		}
	}
	return idle, m.wantedLocked()
}

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
			if c.send(ctx, idle, c.pubsub.Unsubscribe, c.pubsub.SUnsubscribe) != nil || !others {
				return
			}
		}
	}
}

// subscribe sends SUBSCRIBE or SSUBSCRIBE. It does not wait for the confirmations.
func (c *pubsubConn) subscribe(ctx context.Context, channels []string) error {
	return c.send(ctx, channels, c.pubsub.Subscribe, c.pubsub.SSubscribe)
}

// send sends a command for channels: one for all of them, or if the connection is sharded, one for those of each slot, because
// Redis refuses SSUBSCRIBE for channels of several slots.
func (c *pubsubConn) send(ctx context.Context, channels []string, plain, sharded func(context.Context, ...string) error) error {
	command, parts := plain, make(map[uint16][]string, 1)
	if c.sharded {
		command = sharded
	}
	for _, channel := range channels {
		var slot uint16
		if c.sharded {
			slot = Slot(channel)
		}
		parts[slot] = append(parts[slot], channel)
	}
	for _, part := range parts {
		if err := command(ctx, part...); err != nil {
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
