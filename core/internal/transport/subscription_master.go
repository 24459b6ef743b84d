package transport

import (
	"context"
	"math/rand/v2"
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
func (m *masterSubscription) inCluster() bool { return m.subs.nodes.inCluster() }

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

// resetRefused marks the channels as not requested that are not confirmed. Why all of them: the error of a master that does
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

// checkUnheard warns, once, of a channel with waiters that is not confirmed for unheardWarning although its server answers
// commands. In an outage it does not warn, because then the server answers nothing. It must be called every few seconds.
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
