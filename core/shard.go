package core

import (
	"context"
	"math/rand/v2"

	"github.com/redis/go-redis/v9"
)

// shard is where some channels are heard: a master of a Cluster, or elsewhere all of Redis. It keeps a subscription up
// while there is something to listen to.
type shard struct {
	all     *listeners
	master  *redis.Client // nil outside of a Cluster, and for channels of which the master is not known
	changed chan struct{} // holds one element if there are channels that are not subscribed yet
}

// inCluster reports whether channels belong to masters. There they are those of SSUBSCRIBE, if Redis lets us.
func (h *shard) inCluster() bool { return h.all.nodes.cluster != nil }

// run ends when there is nothing to listen to any more.
func (h *shard) run() {
	ctx := h.all.ctx
	sharded := h.inCluster()
	for !h.rest(ctx) {
		if h.inCluster() && h.master == nil {
			pause(ctx, firstLook, nil, nil)
			h.all.settle()
			continue
		}
		end := h.serve(ctx, sharded)
		h.forget()
		if end != endRefused {
			h.all.nodes.requestRefresh() // the master may be gone
		}
		switch {
		case end == endRefused && sharded:
			sharded = false // on the next connection
			continue
		case end == endBroken:
			pause(ctx, firstPause+rand.N(10*firstPause), nil, nil)
		default:
			pause(ctx, keepalive/2+rand.N(keepalive/2), nil, nil)
		}
		sharded = h.inCluster() // the server may have been upgraded, or the user given the right
	}
}

// serve listens on one connection. A panic of the user's client ends it, not the process.
func (h *shard) serve(ctx context.Context, sharded bool) (end end) {
	defer h.all.recovered()
	return newSubscription(h, sharded).serve(ctx)
}

// rest ends the run if there is nothing to listen to, or ctx ended.
func (h *shard) rest(ctx context.Context) bool {
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	if ctx.Err() == nil && h.wanted() {
		return false
	}
	delete(h.all.shards, h.master)
	return true
}

// wanted reports whether there is something to listen to; the mutex of all is held.
func (h *shard) wanted() bool {
	for _, t := range h.all.topics {
		if t.shard == h {
			return true
		}
	}
	return false
}

// forget notes that the connection is gone, and everything subscribed on it.
func (h *shard) forget() {
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	for channel, t := range h.all.topics {
		if t.shard == h {
			t.requested = false
			t.subscribed.Store(false)
			h.all.place(channel, t)
		}
	}
	signal(h.changed)
}

// missing returns the channels to subscribe now.
func (h *shard) missing() []string {
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	var channels []string
	for channel, t := range h.all.topics {
		if t.shard == h && !t.requested {
			t.requested = true
			channels = append(channels, channel)
		}
	}
	return channels
}

// moved takes in that the subscription of a channel has ended, and reports whether nobody has asked for that: the
// master does so by itself when it gives the slot away.
func (h *shard) moved(channel string) bool {
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	t := h.all.topics[channel]
	if t == nil || t.shard != h || !t.subscribed.Load() {
		return false
	}
	t.requested = false
	t.subscribed.Store(false)
	return true
}

// notHere notes that the master has refused channels of slots that it does not own, or not yet.
func (h *shard) notHere() {
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	for _, t := range h.all.topics {
		if t.shard == h && !t.subscribed.Load() {
			t.requested = false
		}
	}
}

// prune drops the channels to which nobody has listened for a while. It returns them, and whether there are others.
func (h *shard) prune() (idle []string, others bool) {
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	for channel, t := range h.all.topics {
		if t.shard != h || len(t.everybody)+len(t.addressed) > 0 {
			continue
		}
		if t.idle++; t.idle > idleRounds {
			delete(h.all.topics, channel)
			idle = append(idle, channel)
		}
	}
	return idle, h.wanted()
}
