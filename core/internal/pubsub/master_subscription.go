package pubsub

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/lifecycle"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// learnInterval is how often the masters of a Cluster are asked for while they are not known.
const learnInterval = 10 * time.Millisecond

// masterSubscription keeps a pub/sub connection to one master of a Cluster, or to Redis elsewhere, while any channel is
// assigned to it.
type masterSubscription struct {
	subs    *Subscriptions
	rdb     *redis.Client // nil outside of a Cluster, and for channels of which the master is not known
	changed chan struct{} // holds one element if there are channels that are not subscribed yet
}

// inCluster reports whether channels belong to masters. There they are those of SSUBSCRIBE, if Redis lets us.
func (h *masterSubscription) inCluster() bool { return h.subs.nodes.InCluster() }

// run connects again and again. It ends when no channel is assigned any more.
func (h *masterSubscription) run() {
	ctx := h.subs.ctx
	sharded := h.inCluster()
	for !h.stopIfIdle(ctx) {
		if h.inCluster() && h.rdb == nil {
			lifecycle.Pause(ctx, learnInterval, nil, nil)
			h.subs.reassignAll()
			continue
		}
		end := h.serve(ctx, sharded)
		h.disconnected()
		if end != endRefused {
			h.subs.nodes.RequestRefresh() // the master may be gone
		}
		switch {
		case end == endRefused && sharded:
			sharded = false // on the next connection
			continue
		case end == endBroken:
			lifecycle.Pause(ctx, transport.FirstPause+rand.N(10*transport.FirstPause), nil, nil)
		default:
			lifecycle.Pause(ctx, pingInterval/2+rand.N(pingInterval/2), nil, nil)
		}
		sharded = h.inCluster() // the server may have been upgraded, or the user given the right
	}
}

// serve runs one connection. A panic of the user's client ends the connection, not the process.
func (h *masterSubscription) serve(ctx context.Context, sharded bool) (end connEnd) {
	defer h.subs.recovered()
	return newPubsubConn(h, sharded).serve(ctx)
}

// stopIfIdle removes the masterSubscription and returns true if no channel is assigned, or ctx has ended.
func (h *masterSubscription) stopIfIdle(ctx context.Context) bool {
	h.subs.mu.Lock()
	defer h.subs.mu.Unlock()
	if ctx.Err() == nil && h.wantedLocked() {
		return false
	}
	delete(h.subs.masters, h.rdb)
	return true
}

// wantedLocked reports whether a channel is assigned to h. The caller holds the mutex of subs.
func (h *masterSubscription) wantedLocked() bool {
	for _, t := range h.subs.channels {
		if t.assigned == h {
			return true
		}
	}
	return false
}

// disconnected records that the connection has ended, and with it all its subscriptions.
func (h *masterSubscription) disconnected() {
	h.subs.mu.Lock()
	defer h.subs.mu.Unlock()
	for channel, t := range h.subs.channels {
		if t.assigned == h {
			t.requested = false
			t.subscribed.Store(false)
			h.subs.assignLocked(channel, t)
		}
	}
	lifecycle.Signal(h.changed)
}

// takeUnsubscribed returns the channels to subscribe now, and marks them as requested.
func (h *masterSubscription) takeUnsubscribed() []string {
	h.subs.mu.Lock()
	defer h.subs.mu.Unlock()
	var channels []string
	for channel, t := range h.subs.channels {
		if t.assigned == h && !t.requested {
			t.requested = true
			channels = append(channels, channel)
		}
	}
	return channels
}

// unsubscribedByServer records that a channel was unsubscribed. It returns true if the client had not asked for that: a
// master unsubscribes a channel when its slot moves to another master.
func (h *masterSubscription) unsubscribedByServer(channel string) bool {
	h.subs.mu.Lock()
	defer h.subs.mu.Unlock()
	t := h.subs.channels[channel]
	if t == nil || t.assigned != h || !t.subscribed.Load() {
		return false
	}
	t.requested = false
	t.subscribed.Store(false)
	return true
}

// resetRefused marks channels as not requested that the master has refused, because it does not own their slots now.
func (h *masterSubscription) resetRefused() {
	h.subs.mu.Lock()
	defer h.subs.mu.Unlock()
	for _, t := range h.subs.channels {
		if t.assigned == h && !t.subscribed.Load() {
			t.requested = false
		}
	}
}

// prune removes the channels without subscribers for maxIdleRounds. It returns them, and whether other channels are left.
func (h *masterSubscription) prune() (idle []string, others bool) {
	h.subs.mu.Lock()
	defer h.subs.mu.Unlock()
	for channel, t := range h.subs.channels {
		if t.assigned != h || len(t.broadcast)+len(t.addressed) > 0 {
			continue
		}
		if t.idle++; t.idle > maxIdleRounds {
			delete(h.subs.channels, channel)
			idle = append(idle, channel)
		}
	}
	return idle, h.wantedLocked()
}
