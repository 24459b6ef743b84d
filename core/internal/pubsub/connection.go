package pubsub

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// pubsubConn is one pub/sub connection to a master. It ends with its first error. The next one subscribes anew, and each
// confirmation notifies the subscribers, so that they ask Redis again.
type pubsubConn struct {
	master  *masterSubscription
	pubsub  *redis.PubSub
	sharded bool    // with SSUBSCRIBE
	end     connEnd // of the reader
}

// connEnd is how a pubsubConn has ended.
type connEnd int

const (
	endUnsubscribed connEnd = iota // nothing was subscribed
	endBroken                      // something was
	endRefused                     // the server does not know the command, or the user may not use it
)

func newPubsubConn(h *masterSubscription, sharded bool) *pubsubConn {
	rdb := h.subs.rdb
	if h.rdb != nil {
		rdb = h.rdb
	}
	return &pubsubConn{master: h, sharded: sharded, pubsub: rdb.Subscribe(context.Background())}
}

// serve receives messages until the connection fails, ctx ends, or no channel is left.
func (s *pubsubConn) serve(ctx context.Context) connEnd {
	ctx, cancel := context.WithCancel(ctx)
	var both sync.WaitGroup
	both.Go(func() {
		defer s.master.subs.recovered()
		defer cancel()
		s.write(ctx)
	})
	both.Go(func() {
		defer s.master.subs.recovered()
		<-ctx.Done()
		_ = s.pubsub.Close() // ends a read in flight
	})
	defer both.Wait()
	defer cancel()
	s.read(ctx)
	return s.end
}

// write subscribes what is missing, unsubscribes what is idle, and ends when nothing is left.
func (s *pubsubConn) write(ctx context.Context) {
	ticker := time.NewTicker(pingInterval)
	defer ticker.Stop()
	for s.subscribe(ctx, s.master.takeUnsubscribed()) == nil {
		select {
		case <-ctx.Done():
			return
		case <-s.master.changed:
		case <-ticker.C:
			s.master.subs.reassignAll()
			idle, others := s.master.prune()
			if s.unsubscribe(ctx, idle) != nil || !others {
				return
			}
		}
	}
}

func (s *pubsubConn) subscribe(ctx context.Context, channels []string) error {
	if !s.sharded {
		return sendAll(ctx, channels, s.pubsub.Subscribe)
	}
	return sendBySlot(ctx, channels, s.pubsub.SSubscribe)
}

func (s *pubsubConn) unsubscribe(ctx context.Context, channels []string) error {
	if !s.sharded {
		return sendAll(ctx, channels, s.pubsub.Unsubscribe)
	}
	return sendBySlot(ctx, channels, s.pubsub.SUnsubscribe)
}

// sendAll sends one command for all channels, if there are any.
func sendAll(ctx context.Context, channels []string, send func(context.Context, ...string) error) error {
	if len(channels) == 0 {
		return nil
	}
	return send(ctx, channels...)
}

// sendBySlot sends one command for the channels of each slot: Redis refuses those of several slots in one.
func sendBySlot(ctx context.Context, channels []string, send func(context.Context, ...string) error) error {
	slots := make(map[uint16][]string)
	for _, channel := range channels {
		slots[transport.Slot(channel)] = append(slots[transport.Slot(channel)], channel)
	}
	for _, together := range slots {
		if err := send(ctx, together...); err != nil {
			return err
		}
	}
	return nil
}

// read dispatches messages. It pings a connection that is silent for a pingInterval, and returns if there is no answer.
func (s *pubsubConn) read(ctx context.Context) {
	silent := 0
	for ctx.Err() == nil {
		message, err := s.pubsub.ReceiveTimeout(ctx, pingInterval)
		var late net.Error
		switch {
		case errors.As(err, &late) && late.Timeout() && silent == 0:
			silent++
			if s.pubsub.Ping(ctx) != nil {
				return
			}
			continue
		case servedElsewhere(err):
			s.master.resetRefused()
			s.master.subs.nodes.RequestRefresh()
			continue
		case err != nil:
			s.refused(err)
			return
		}
		silent = 0
		switch m := message.(type) {
		case *redis.Message:
			s.master.subs.dispatch(m.Channel, m.Payload)
		case *redis.Subscription:
			s.changed(m)
		}
	}
}

// servedElsewhere reports whether a channel was refused because another master, or none, owns its slot now.
func servedElsewhere(err error) bool {
	return err != nil && (redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "CLUSTERDOWN"))
}

// refused records an error that another try would not change: an unknown command, or a missing right.
func (s *pubsubConn) refused(err error) {
	if transport.Classify(err) != transport.Failed && !transport.RefusesUser(err) && !transport.UnknownCommand(err) {
		return
	}
	s.end = endRefused
	if !s.sharded || redis.HasErrorPrefix(err, "NOPERM") {
		s.master.subs.warn(err, s.sharded)
	}
}

func (s *pubsubConn) changed(m *redis.Subscription) {
	switch m.Kind {
	case "subscribe", "ssubscribe":
		s.end = endBroken
		s.master.subs.confirm(s.master, m.Channel)
	case "sunsubscribe":
		if s.master.unsubscribedByServer(m.Channel) {
			s.master.subs.nodes.RequestRefresh()
		}
	}
}
