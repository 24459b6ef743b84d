package core

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// listeners tells waiters of releases, over one subscription connection for all names of a client, or one per master of
// a Cluster. What it tells is only a hint: messages get lost with connections, buffers and failovers, so every waiter
// also looks by itself now and then.
type listeners struct {
	rdb    redis.UniversalClient
	nodes  *nodes
	warn   func(err error, sharded bool) // of a refusal
	number string                        // of the client, see callers.go
	pass   func(c *caller)               // what is said to a caller who has gone; must not wait

	ctx  context.Context // of all connections
	stop context.CancelFunc
	runs sync.WaitGroup // of the shards

	mu     sync.Mutex
	topics map[string]*topic        // by channel
	shards map[*redis.Client]*shard // by master; nil outside of a Cluster, or while it is not known
	closed bool
}

// topic is one channel and those who listen to it.
type topic struct {
	everybody  map[*listener]struct{} // who hear all that is said
	caller     *caller                // the last that was among them
	addressed  map[string]*listener   // who hear what is said to them
	shard      *shard
	requested  bool // SUBSCRIBE was sent on the shard's present connection
	subscribed atomic.Bool
	idle       int // keepalive rounds without a listener
}

// listener is told when something happened on a channel: a message, or the start of a subscription, before
// which messages may have been missed. One with an address hears only messages that begin with it.
type listener struct {
	C       <-chan struct{}
	c       chan struct{}
	all     *listeners
	topic   *topic
	address string
	caller  *caller // nil unless it waits to be called, see callers.go
	said    int64   // the greatest number that followed the address; guarded by the listeners' mutex
}

const (
	// keepalive is how often the subscription is pinged while it is silent. A connection that has not answered
	// when the next ping is due is dead; go-redis itself would not notice.
	keepalive = 2 * time.Second
	// idleRounds is how many of these a channel stays subscribed without a listener, so that waiters who come
	// and go do not cause a SUBSCRIBE and an UNSUBSCRIBE each.
	idleRounds = 2
)

func newListeners(rdb redis.UniversalClient, nodes *nodes, warn func(error, bool)) *listeners {
	s := &listeners{
		rdb: rdb, nodes: nodes, warn: warn, topics: make(map[string]*topic), shards: make(map[*redis.Client]*shard),
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	if nodes.topology != nil {
		nodes.topology.onRefresh = s.settle
	}
	return s
}

// to starts listening to a channel: to everything, or to what is said to the address.
func (s *listeners) to(channel, address string) *listener {
	return s.listen(&listener{c: make(chan struct{}, 1), address: address}, channel)
}

// into is to everything that is said on a channel, for somebody who hears of it on c.
func (s *listeners) into(c chan struct{}, channel string) *listener {
	return s.listen(&listener{c: c}, channel)
}

func (s *listeners) listen(l *listener, channel string) *listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.topics[channel] == nil {
		t := &topic{everybody: make(map[*listener]struct{}), addressed: make(map[string]*listener)}
		s.topics[channel] = t
		s.place(channel, t)
	}
	s.add(l, channel)
	if l.topic.subscribed.Load() {
		if l.caller != nil {
			l.caller.open = true
		}
		signal(l.c) // nothing will tell it later that the subscription is there
	}
	return l
}

// joining is to, for somebody who has not looked yet: it does nothing and returns nil unless others listen to the
// channel, and that the subscription is there already is no news.
func (s *listeners) joining(channel, address string) *listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.topics[channel] == nil {
		return nil
	}
	l := &listener{c: make(chan struct{}, 1), address: address}
	s.add(l, channel)
	return l
}

func (s *listeners) add(l *listener, channel string) {
	l.all, l.C, l.topic = s, l.c, s.topics[channel]
	if l.caller != nil {
		l.topic.caller = l.caller
	}
	if l.address == "" {
		l.topic.everybody[l] = struct{}{}
	} else {
		l.topic.addressed[l.address] = l
	}
	l.topic.idle = 0
}

func (l *listener) close() {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	delete(l.topic.everybody, l)
	l.caller.rest()
	if l.topic.addressed[l.address] == l {
		delete(l.topic.addressed, l.address)
	}
}

// token returns the number that was said to the listener, 0 if none was.
func (l *listener) token() int64 {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	return l.said
}

// ear is where somebody hears of releases: a listener, or several of them.
type ear interface {
	news() <-chan struct{}
	confirmed() bool     // reports whether messages can be expected
	asks() (called bool) // says that one asks now, and reports whether one was called for that
	close()
}

func (l *listener) news() <-chan struct{} { return l.C }

// confirmed reports whether messages can be expected.
func (l *listener) confirmed() bool { return l.topic.subscribed.Load() }

// place puts a channel where it is to be heard now; s.mu is held.
func (s *listeners) place(channel string, t *topic) {
	master := s.nodes.master(channel)
	if t.shard != nil && (master == nil || master == t.shard.master) {
		return
	}
	h := s.shards[master]
	if h == nil {
		h = &shard{all: s, master: master, changed: make(chan struct{}, 1)}
		s.shards[master] = h
		if !s.closed {
			s.runs.Go(h.run)
		}
	}
	t.shard, t.requested = h, false
	t.subscribed.Store(false)
	signal(h.changed)
}

// settle puts all channels where they are to be heard now.
func (s *listeners) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for channel, t := range s.topics {
		s.place(channel, t)
	}
}

// close ends all connections. It waits for that, but not for longer than limit: go-redis does not interrupt the dial of
// a server that does not answer.
func (s *listeners) close(limit time.Duration) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.runs.Wait()
	}()
	pause(context.Background(), limit, done, nil)
}

// recovered is to be deferred by goroutines that call the user's client, where a panic would end the process: of a hook,
// or of a client that does not subscribe as go-redis's own do. Waiters look by themselves then.
func (s *listeners) recovered() {
	if p := recover(); p != nil {
		s.warn(fmt.Errorf("%w: %v", errPanic, p), false)
	}
}

// tell passes a message on.
func (s *listeners) tell(channel, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[channel]
	if t == nil {
		return
	}
	address, number, _ := strings.Cut(message, " ")
	if l := t.addressed[address]; l != nil {
		n, _ := strconv.ParseInt(number, 10, 64)
		l.said = max(l.said, n)
		signal(l.c)
		return
	}
	taken := false
	for l := range t.everybody {
		if l.caller == nil && !isCall(message) || l.caller != nil && l.hear(message) {
			signal(l.c)
			taken = true
		}
	}
	if message == s.number && t.caller != nil && !taken {
		s.pass(t.caller)
	}
}

// confirm wakes all who listen to a channel: from now on they hear what is said there, unless it has moved away from
// the shard meanwhile.
func (s *listeners) confirm(h *shard, channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[channel]
	if t == nil || t.shard != h {
		return
	}
	t.subscribed.Store(true)
	for l := range t.everybody {
		if l.caller != nil {
			l.caller.open = true
		}
		signal(l.c)
	}
	for _, l := range t.addressed {
		signal(l.c)
	}
}

// signal leaves a note that is not multiplied.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
