package core

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// subscription is one connection on which listeners hear what is said in a shard. It ends with its first error; its
// successor subscribes anew, which makes all listeners look at their locks.
type subscription struct {
	shard   *shard
	pubsub  *redis.PubSub
	sharded bool // with SSUBSCRIBE
	end     end  // of the reader
}

// end tells how a subscription went.
type end int

const (
	endUnheard end = iota // nothing was subscribed
	endBroken             // something was
	endRefused            // the server does not know the command, or the user may not use it
)

func newSubscription(h *shard, sharded bool) *subscription {
	rdb := h.all.rdb
	if h.master != nil {
		rdb = h.master
	}
	return &subscription{shard: h, sharded: sharded, pubsub: rdb.Subscribe(context.Background())}
}

// serve listens until the connection fails, ctx ends, or there is nothing left to listen to.
func (s *subscription) serve(ctx context.Context) end {
	ctx, cancel := context.WithCancel(ctx)
	var both sync.WaitGroup
	both.Go(func() {
		defer s.shard.all.recovered()
		defer cancel()
		s.write(ctx)
	})
	both.Go(func() {
		defer s.shard.all.recovered()
		<-ctx.Done()
		_ = s.pubsub.Close() // ends a read in flight
	})
	defer both.Wait()
	defer cancel()
	s.read(ctx)
	return s.end
}

// write subscribes what is missing, unsubscribes what is idle, and ends when nothing is left.
func (s *subscription) write(ctx context.Context) {
	ticker := time.NewTicker(keepalive)
	defer ticker.Stop()
	for s.subscribe(ctx, s.shard.missing()) == nil {
		select {
		case <-ctx.Done():
			return
		case <-s.shard.changed:
		case <-ticker.C:
			s.shard.all.settle()
			idle, others := s.shard.prune()
			if s.unsubscribe(ctx, idle) != nil || !others {
				return
			}
		}
	}
}

func (s *subscription) subscribe(ctx context.Context, channels []string) error {
	if !s.sharded {
		return inOne(ctx, channels, s.pubsub.Subscribe)
	}
	return bySlot(ctx, channels, s.pubsub.SSubscribe)
}

func (s *subscription) unsubscribe(ctx context.Context, channels []string) error {
	if !s.sharded {
		return inOne(ctx, channels, s.pubsub.Unsubscribe)
	}
	return bySlot(ctx, channels, s.pubsub.SUnsubscribe)
}

// inOne sends one command for all channels, if there are any.
func inOne(ctx context.Context, channels []string, send func(context.Context, ...string) error) error {
	if len(channels) == 0 {
		return nil
	}
	return send(ctx, channels...)
}

// bySlot sends one command for the channels of each slot: Redis refuses those of several slots in one.
func bySlot(ctx context.Context, channels []string, send func(context.Context, ...string) error) error {
	slots := make(map[uint16][]string)
	for _, channel := range channels {
		slots[slot(channel)] = append(slots[slot(channel)], channel)
	}
	for _, together := range slots {
		if err := send(ctx, together...); err != nil {
			return err
		}
	}
	return nil
}

// read passes on what arrives. A silent connection is asked for a sign of life; one that gives none is dead.
func (s *subscription) read(ctx context.Context) {
	silent := 0
	for ctx.Err() == nil {
		message, err := s.pubsub.ReceiveTimeout(ctx, keepalive)
		var late net.Error
		switch {
		case errors.As(err, &late) && late.Timeout() && silent == 0:
			silent++
			if s.pubsub.Ping(ctx) != nil {
				return
			}
			continue
		case elsewhere(err):
			s.shard.notHere()
			s.shard.all.nodes.requestRefresh()
			continue
		case err != nil:
			s.refused(err)
			return
		}
		silent = 0
		switch m := message.(type) {
		case *redis.Message:
			s.shard.all.tell(m.Channel, m.Payload)
		case *redis.Subscription:
			s.changed(m)
		}
	}
}

// elsewhere reports whether a channel was refused because its slot is served somewhere else, or nowhere now.
func elsewhere(err error) bool {
	return err != nil && (redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "CLUSTERDOWN"))
}

// refused tells of an error that another try will not cure.
func (s *subscription) refused(err error) {
	if classify(err) != failed && !refusesUser(err) && !unknownCommand(err) {
		return
	}
	s.end = endRefused
	if !s.sharded || redis.HasErrorPrefix(err, "NOPERM") {
		s.shard.all.warn(err, s.sharded)
	}
}

func (s *subscription) changed(m *redis.Subscription) {
	switch m.Kind {
	case "subscribe", "ssubscribe":
		s.end = endBroken
		s.shard.all.confirm(s.shard, m.Channel)
	case "sunsubscribe":
		if s.shard.moved(m.Channel) {
			s.shard.all.nodes.requestRefresh()
		}
	}
}
