package pubsub

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/lifecycle"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// Subscriptions notifies waiters of releases. It has one pub/sub connection for all names of a client, in a Cluster one
// per master. A notification is only a hint: messages get lost with connections, buffers and failovers. So every waiter
// polls as well.
type Subscriptions struct {
	rdb          redis.UniversalClient
	nodes        *transport.Nodes
	warn         func(err error, sharded bool) // of a refusal
	clientNumber string                        // of the client, see wake_one.go
	wakeNext     func(lock, set string)        // nil without a number

	ctx         context.Context // of all connections
	stop        context.CancelFunc
	connections sync.WaitGroup // of the masters

	mu       sync.Mutex
	channels map[string]*channelState              // by channel
	masters  map[*redis.Client]*masterSubscription // by master; nil outside of a Cluster, or while it is not known
	closed   bool
}

// channelState is one channel and its subscribers.
type channelState struct {
	broadcast  map[*Subscriber]struct{} // receive all messages without an address
	lastClient *waitingClient           // of the last of them that had one
	addressed  map[string]*Subscriber   // receive the messages with their address
	assigned   *masterSubscription
	requested  bool // SUBSCRIBE was sent on the present connection of master
	subscribed atomic.Bool
	idle       int // rounds of pingInterval without a subscriber
}

// Subscriber is one waiter on a channel. It is notified of a message, and of the start of the subscription, before which
// messages may have been missed. A subscriber with an address receives only the messages that begin with the address.
type Subscriber struct {
	C         <-chan struct{}
	c         chan struct{}
	subs      *Subscriptions
	channel   *channelState
	address   string
	client    *waitingClient // nil unless it is woken by the client's number, see wake_one.go
	lastToken int64          // the greatest that followed the address; guarded by the mutex of subscriptions
}

const (
	// pingInterval is how often a silent connection is pinged. A connection that has not answered when the next ping is due
	// is dead. Why: go-redis does not notice a dead connection.
	pingInterval = 2 * time.Second
	// maxIdleRounds is how many pingIntervals a channel stays subscribed without a subscriber. Why: otherwise every short
	// wait would cause a SUBSCRIBE and an UNSUBSCRIBE.
	maxIdleRounds = 2
)

// New returns subscriptions without a connection: the first subscriber makes one. The function warn is called if Redis, or
// the Redis client, refuses to subscribe.
func New(rdb redis.UniversalClient, nodes *transport.Nodes, warn func(error, bool)) *Subscriptions {
	s := &Subscriptions{
		rdb: rdb, nodes: nodes, warn: warn, channels: make(map[string]*channelState), masters: make(map[*redis.Client]*masterSubscription),
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	nodes.OnRefresh(s.reassignAll)
	return s
}

// UseClientNumber sets the number under which this client is woken. The function wakeNext is called if the client was
// woken and none of its callers waits for the lock. It must not block.
func (s *Subscriptions) UseClientNumber(number string, wakeNext func(lock, set string)) {
	s.clientNumber, s.wakeNext = number, wakeNext
}

// Subscribe adds a subscriber to a channel: to all messages, or to those with the address.
func (s *Subscriptions) Subscribe(channel, address string) *Subscriber {
	return s.add(&Subscriber{c: make(chan struct{}, 1), address: address}, channel)
}

// SubscribeTo is subscribe to all messages of a channel, with notifications on c.
func (s *Subscriptions) SubscribeTo(c chan struct{}, channel string) *Subscriber {
	return s.add(&Subscriber{c: c}, channel)
}

func (s *Subscriptions) add(sub *Subscriber, channel string) *Subscriber {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.channels[channel] == nil {
		ch := &channelState{broadcast: make(map[*Subscriber]struct{}), addressed: make(map[string]*Subscriber)}
		s.channels[channel] = ch
		s.assignLocked(channel, ch)
	}
	s.addLocked(sub, channel)
	if sub.channel.subscribed.Load() {
		if sub.client != nil {
			sub.client.freeForAll = true
		}
		lifecycle.Signal(sub.c) // the subscription is there already: no other notification will say so
	}
	return sub
}

// SubscribeIfActive is subscribe for a caller that has not asked Redis yet. It returns nil if the channel has no state,
// that is if it would have to be subscribed first. It does not notify of a subscription that is there already.
func (s *Subscriptions) SubscribeIfActive(channel, address string) *Subscriber {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.channels[channel] == nil {
		return nil
	}
	sub := &Subscriber{c: make(chan struct{}, 1), address: address}
	s.addLocked(sub, channel)
	return sub
}

func (s *Subscriptions) addLocked(sub *Subscriber, channel string) {
	sub.subs, sub.C, sub.channel = s, sub.c, s.channels[channel]
	if sub.client != nil {
		sub.channel.lastClient = sub.client
	}
	if sub.address == "" {
		sub.channel.broadcast[sub] = struct{}{}
	} else {
		sub.channel.addressed[sub.address] = sub
	}
	sub.channel.idle = 0
}

// Close ends the subscription of this waiter.
func (sub *Subscriber) Close() {
	sub.subs.mu.Lock()
	defer sub.subs.mu.Unlock()
	delete(sub.channel.broadcast, sub)
	sub.client.stopRecheck()
	if sub.channel.addressed[sub.address] == sub {
		delete(sub.channel.addressed, sub.address)
	}
}

// LastToken returns the greatest token in a message to the subscriber, 0 if there was none.
func (sub *Subscriber) LastToken() int64 {
	sub.subs.mu.Lock()
	defer sub.subs.mu.Unlock()
	return sub.lastToken
}

// Notifications returns the channel that receives a value for each notification. It holds one.
func (sub *Subscriber) Notifications() <-chan struct{} { return sub.C }

// Confirmed reports whether Redis has confirmed the subscription, so that messages can be expected.
func (sub *Subscriber) Confirmed() bool { return sub.channel.subscribed.Load() }

// assignLocked assigns a channel to the connection of the master that owns its slot now.
func (s *Subscriptions) assignLocked(channel string, ch *channelState) {
	master := s.nodes.Master(channel)
	if ch.assigned != nil && (master == nil || master == ch.assigned.rdb) {
		return
	}
	m := s.masters[master]
	if m == nil {
		m = &masterSubscription{subs: s, rdb: master, changed: make(chan struct{}, 1)}
		s.masters[master] = m
		if !s.closed {
			s.connections.Go(m.run)
		}
	}
	ch.assigned, ch.requested = m, false
	ch.subscribed.Store(false)
	lifecycle.Signal(m.changed)
}

// reassignAll assigns all channels anew, after slots may have moved.
func (s *Subscriptions) reassignAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for channel, ch := range s.channels {
		s.assignLocked(channel, ch)
	}
}

// Close ends all connections. It waits for them, but not longer than limit. Why: go-redis does not interrupt the dial of a
// server that does not answer.
func (s *Subscriptions) Close(limit time.Duration) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.connections.Wait()
	}()
	lifecycle.Pause(context.Background(), limit, done, nil)
}

// recovered logs a panic of the user's client: of a hook, or of a client that does not subscribe as go-redis's own do.
// Goroutines that call the client must defer it, otherwise the panic would end the process. Waiters poll then.
func (s *Subscriptions) recovered() {
	if p := recover(); p != nil {
		s.warn(fmt.Errorf("%w: %v", transport.ErrPanic, p), false)
	}
}

// dispatch notifies the subscribers of a message.
func (s *Subscriptions) dispatch(channel, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.channels[channel]
	if ch == nil {
		return
	}
	address, token, _ := strings.Cut(message, " ")
	if sub := ch.addressed[address]; sub != nil {
		n, _ := strconv.ParseInt(token, 10, 64)
		sub.lastToken = max(sub.lastToken, n)
		lifecycle.Signal(sub.c)
		return
	}
	delivered := false
	for sub := range ch.broadcast {
		if sub.client == nil && !isWakeMessage(message) || sub.client != nil && sub.receive(message) {
			lifecycle.Signal(sub.c)
			delivered = true
		}
	}
	if message == s.clientNumber && ch.lastClient != nil && !delivered {
		s.wakeNext(ch.lastClient.lock, ch.lastClient.set)
	}
}

// confirm records that a channel is subscribed, and notifies all its subscribers, which may have missed messages. It does
// nothing if the channel was assigned to another master meanwhile.
func (s *Subscriptions) confirm(m *masterSubscription, channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.channels[channel]
	if ch == nil || ch.assigned != m {
		return
	}
	ch.subscribed.Store(true)
	for sub := range ch.broadcast {
		if sub.client != nil {
			sub.client.freeForAll = true
		}
		lifecycle.Signal(sub.c)
	}
	for _, sub := range ch.addressed {
		lifecycle.Signal(sub.c)
	}
}
