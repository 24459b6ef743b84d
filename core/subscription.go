package core

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// subscription is one connection on which listeners hear. It ends with its first error; its successor
// subscribes anew, which makes all listeners look at their locks.
type subscription struct {
	all    *listeners
	pubsub *redis.PubSub
	worked bool // something was subscribed; of the reader
}

func newSubscription(all *listeners) *subscription {
	return &subscription{all: all, pubsub: all.rdb.Subscribe(context.Background())}
}

// serve listens until the connection fails, ctx ends, or there is nothing left to listen to. It reports whether
// anything was subscribed at all.
func (s *subscription) serve(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	var both sync.WaitGroup
	both.Go(func() {
		defer cancel()
		s.write(ctx)
	})
	both.Go(func() {
		<-ctx.Done()
		_ = s.pubsub.Close() // ends a read in flight
	})
	s.read(ctx)
	cancel()
	both.Wait()
	return s.worked
}

// write subscribes what is missing, unsubscribes what is idle, and ends when nothing is left.
func (s *subscription) write(ctx context.Context) {
	ticker := time.NewTicker(keepalive)
	defer ticker.Stop()
	for {
		var err error
		if missing := s.all.missing(); len(missing) > 0 {
			err = s.pubsub.Subscribe(ctx, missing...)
		}
		if err != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-s.all.changed:
		case <-ticker.C:
			if idle := s.all.prune(); len(idle) > 0 {
				err = s.pubsub.Unsubscribe(ctx, idle...)
			}
			if err != nil || s.all.empty() {
				return
			}
		}
	}
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
		case err != nil:
			if classify(err) == failed {
				s.all.warn(err)
			}
			return
		}
		silent = 0
		switch m := message.(type) {
		case *redis.Message:
			s.all.tell(m.Channel, m.Payload)
		case *redis.Subscription:
			if m.Kind == "subscribe" {
				s.worked = true
				s.all.confirm(m.Channel)
			}
		}
	}
}
