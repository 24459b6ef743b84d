package transport

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
)

// Subscriptions notifies waiters of releases. It has one pub/sub connection for all names of a client, in a Cluster one
// per master. A notification is only a hint: messages get lost with connections, buffers and failovers. So every waiter
// polls as well. It is safe for concurrent use.
type Subscriptions struct {
	rdb          redis.UniversalClient
	nodes        *Nodes
	warn         func(err error, sharded bool) // called for each refusal
	warned       atomic.Bool                   // true after a call of warn that explains why no channel is confirmed
	clientNumber string                        // "" without a number, see handedOver
	wakeNext     func(lock, set string)        // nil without a number

	// Unconfirmed is called, once, if the server answers commands and confirms no subscription for some seconds. It may be nil,
	// and must be set before the first subscription.
	Unconfirmed func()

	ctx         context.Context // of all connections
	stop        context.CancelFunc
	connections sync.WaitGroup // the goroutines of the masters

	mu sync.Mutex

	// Guarded by mu.
	channels map[string]*channelState              // by name
	masters  map[*redis.Client]*masterSubscription // by master; the key nil is for Redis without a Cluster, or an unknown master
	closed   bool
}

// channelState is one channel and its subscribers. Its fields are guarded by the mutex of Subscriptions.
type channelState struct {
	broadcast  map[*Subscriber]struct{} // receive all messages that have no address of a subscriber
	lastClient *waitingClient           // of the last subscriber that had one; nil if there was none
	addressed  map[string]*Subscriber   // receive the messages with their address
	assigned   *masterSubscription
	requested  time.Time   // when SUBSCRIBE was sent on the present connection; zero if it was not
	subscribed atomic.Bool // true if Redis has confirmed that; written with the mutex only, read without
	idle       int         // pingIntervals without a subscriber
	unheard    unheard
}

// unheard is what is known of a channel that is not confirmed, although its server answers commands.
type unheard struct {
	answered int       // looks in a row, each of which found answers since the one before
	since    time.Time // of the look before the first of them
	looked   time.Time // zero before the first look
	answers  uint64    // of the server, at the last look
}

// look takes note of how often the server has answered. It returns true after unheardLooks in a row, and unheardWarning, if the server has
// answered between any two of them. The time alone says too little, because a connection that cannot be made keeps its goroutine from
// looking, and an outage may have begun and ended meanwhile. A look that follows another one too soon does not count, because there may be
// no answer in between.
func (u *unheard) look(answers uint64, now time.Time) bool {
	switch {
	case u.looked.IsZero():
	case now.Sub(u.looked) < pingInterval/2:
		return false
	case answers == u.answers:
		u.answered = 0
	default:
		if u.answered++; u.answered == 1 {
			u.since = u.looked
		}
	}
	u.looked, u.answers = now, answers
	return u.answered >= unheardLooks && now.Sub(u.since) >= unheardWarning
}

// TokenLimit is the greatest fencing token, see lua/lock/token.lua of package script. A greater number in a reply, a message or
// a key is no token: another program has written it, and a resource that saw it once would refuse all real tokens.
const TokenLimit = 9007194959773696

// Subscriber is one waiter on a channel. It is notified of a message, and of the start of the subscription, before which
// messages may have been missed. A subscriber with an address receives only the messages that begin with the address.
type Subscriber struct {
	C         chan struct{} // receives a value for each notification; it holds one, so several may count as one
	subs      *Subscriptions
	channel   *channelState
	address   string         // "" if it receives broadcasts
	client    *waitingClient // nil unless it is woken by the client's number
	lastToken int64          // the greatest in a message to the address, up to TokenLimit; guarded by the mutex of Subscriptions
	lastSlot  int            // in the same message
}

const (
	// pingInterval is how often a silent connection is pinged. A connection that has not answered when the next ping is due is
	// dead, because go-redis does not notice a dead connection.
	pingInterval = 2 * time.Second
	// maxIdleRounds is how many pingIntervals a channel stays subscribed without a subscriber, because otherwise every short
	// wait would cause a SUBSCRIBE and an UNSUBSCRIBE.
	maxIdleRounds = 2
	// confirmTimeout is how long a connection may leave a subscription unconfirmed. Then it is replaced, even if it answers
	// pings, because a proxy may swallow SUBSCRIBE and pass on the rest.
	confirmTimeout = 2 * pingInterval
	// unheardWarning is for how long a channel with waiters must be unconfirmed, while the server answers commands, before the
	// client warns, and unheardLooks is at how many looks in a row. It is longer than a reconnection, and than a confirmTimeout.
	unheardWarning = unheardLooks * pingInterval
	unheardLooks   = 3
)

// NewSubscriptions returns subscriptions without a connection: the first subscriber makes one. The function warn is called if Redis
// refuses to subscribe, or if the Redis client panics. The caller must call Close.
func NewSubscriptions(rdb redis.UniversalClient, nodes *Nodes, warn func(error, bool)) *Subscriptions {
	s := &Subscriptions{
		rdb: rdb, nodes: nodes, warn: warn, channels: make(map[string]*channelState), masters: make(map[*redis.Client]*masterSubscription),
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	nodes.refresh.done = s.reassignAll
	return s
}

// UseClientNumber sets the number under which this client is woken. It must be called before the first subscription. The
// function wakeNext is called if the client was woken and none of its callers waits for the lock. It must not block, and
// must not call Subscriptions, because the mutex is locked.
func (s *Subscriptions) UseClientNumber(number string, wakeNext func(lock, set string)) {
	s.clientNumber, s.wakeNext = number, wakeNext
}

// Subscribe adds a subscriber to a channel. If address is "", it receives broadcasts: all messages that have no address of
// another subscriber of this client. Otherwise it receives the messages with that address. If the channel is subscribed
// already, the subscriber is notified at once. The caller must call Close.
func (s *Subscriptions) Subscribe(channel, address string) *Subscriber {
	return s.add(&Subscriber{C: make(chan struct{}, 1), address: address}, channel)
}

// SubscribeTo is Subscribe to broadcasts, with notifications on c. The channel c must have a capacity of one. Several
// subscribers may share it.
func (s *Subscriptions) SubscribeTo(c chan struct{}, channel string) *Subscriber {
	return s.add(&Subscriber{C: c}, channel)
}

// add adds a subscriber to a channel, which it requests if necessary, and notifies the subscriber if Redis has confirmed the
// channel before.
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
		sub.notifyLocked() // no confirmation will follow that could notify it
	}
	return sub
}

// SubscribeIfActive is Subscribe for a caller that has not asked Redis yet. It returns nil if the channel is not requested
// yet, so that a caller that need not wait causes no SUBSCRIBE. It does not notify at once, because the caller asks Redis
// anyway. If it does not return nil, the caller must call Close.
func (s *Subscriptions) SubscribeIfActive(channel, address string) *Subscriber {
	return s.addIfActive(channel, func() *Subscriber { return &Subscriber{C: make(chan struct{}, 1), address: address} })
}

// addIfActive makes a subscriber, and adds it to a channel that is requested already. Otherwise it returns nil, and makes none,
// because most callers need not wait.
func (s *Subscriptions) addIfActive(channel string, newSubscriber func() *Subscriber) *Subscriber {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.channels[channel] == nil {
		return nil
	}
	sub := newSubscriber()
	s.addLocked(sub, channel)
	return sub
}

// addLocked adds a subscriber to a channel that has a state.
func (s *Subscriptions) addLocked(sub *Subscriber, channel string) {
	sub.subs, sub.channel = s, s.channels[channel]
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

// Close ends the subscription of this waiter. It does not wait, and may be called twice. The channel stays subscribed for a
// while, see maxIdleRounds.
func (sub *Subscriber) Close() {
	sub.subs.mu.Lock()
	defer sub.subs.mu.Unlock()
	delete(sub.channel.broadcast, sub)
	sub.client.stopRecheck()
	if sub.channel.addressed[sub.address] == sub {
		delete(sub.channel.addressed, sub.address)
	}
}

// LastGrant returns the greatest token in a message to the address of the subscriber, and the slot of a semaphore in the same
// message. It returns 0 if there was none.
func (sub *Subscriber) LastGrant() (token int64, slot int) {
	sub.subs.mu.Lock()
	defer sub.subs.mu.Unlock()
	return sub.lastToken, sub.lastSlot
}

// Notifications returns the field C. It exists for interfaces.
func (sub *Subscriber) Notifications() <-chan struct{} { return sub.C }

// Confirmed returns true if Redis has confirmed the subscription on the present connection, so that messages can be expected.
func (sub *Subscriber) Confirmed() bool { return sub.channel.subscribed.Load() }

// assignLocked assigns a channel to the connection of the master that owns its slot now. It does nothing if the channel is
// assigned to that one, or if the master is not known.
func (s *Subscriptions) assignLocked(channel string, ch *channelState) {
	master := s.nodes.master(channel)
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
	ch.assigned = m
	ch.unsubscribedLocked()
	keepalive.Signal(m.changed)
}

// unsubscribedLocked records that the channel is not subscribed, so that it is requested again.
func (ch *channelState) unsubscribedLocked() {
	ch.requested = time.Time{}
	ch.subscribed.Store(false)
}

// reassignAll assigns all channels anew, after slots may have moved.
func (s *Subscriptions) reassignAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for channel, ch := range s.channels {
		s.assignLocked(channel, ch)
	}
}

// Close ends all connections. It waits for them, but not longer than limit, because go-redis does not interrupt the dial of a
// server that does not answer. Subscribers are not notified any more.
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
	keepalive.Pause(context.Background(), limit, done, nil)
}

// recovered warns of a panic of the user's client: of a hook, or of a client that does not implement Subscribe as go-redis
// does. Goroutines that call the client must defer it, because the panic would end the process. Waiters poll then.
func (s *Subscriptions) recovered() {
	if p := recover(); p != nil {
		s.warned.Store(true)
		s.warn(fmt.Errorf("%w: %v", ErrPanic, p), false)
	}
}

// dispatch notifies the subscribers of a message. A message with the address of a subscriber concerns only that one. Any
// other concerns all broadcast subscribers; those that are woken by the client's number decide by receive.
//
// If the message is this client's number and no subscriber takes it, the client has stopped waiting meanwhile. Then it must
// wake the next client, because the release has woken no other one.
func (s *Subscriptions) dispatch(channel, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.channels[channel]
	if ch == nil {
		return
	}
	address, grant, _ := strings.Cut(message, " ")
	if sub := ch.addressed[address]; sub != nil {
		text, slot, _ := strings.Cut(grant, " ")
		if token, _ := strconv.ParseInt(text, 10, 64); token > sub.lastToken && token <= TokenLimit {
			sub.lastToken = token
			sub.lastSlot, _ = strconv.Atoi(slot)
		}
		keepalive.Signal(sub.C)
		return
	}
	delivered := false
	for sub := range ch.broadcast {
		if sub.client == nil && !isWakeMessage(message) || sub.client != nil && sub.receive(message) {
			keepalive.Signal(sub.C)
			delivered = true
		}
	}
	if message == s.clientNumber && ch.lastClient != nil && !delivered {
		s.wakeNext(ch.lastClient.lock, ch.lastClient.set)
	}
}

// confirm records that a channel is subscribed. It notifies all its subscribers, because they may have missed messages. It
// does nothing if the channel was assigned to another master meanwhile.
func (s *Subscriptions) confirm(m *masterSubscription, channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.channels[channel]
	if ch == nil || ch.assigned != m {
		return
	}
	ch.subscribed.Store(true)
	ch.unheard = unheard{}
	for sub := range ch.broadcast {
		sub.notifyLocked()
	}
	for _, sub := range ch.addressed {
		sub.notifyLocked()
	}
}

// notifyLocked notifies a subscriber that may have missed messages.
func (sub *Subscriber) notifyLocked() {
	if sub.client != nil {
		sub.client.freeForAll = true
	}
	keepalive.Signal(sub.C)
}

// Clients that wait for a Mutex are woken one at a time (wake-one). Each has a number in a set in Redis. A release takes one
// number out and publishes two messages: the number, which wakes that client, and handedOver, which the others receive; see
// internal/script/lua/lock/wake_next.lua. Otherwise every release would wake all clients, and all but one in vain.
//
// The woken client may have crashed, or may have stopped waiting. The steps:
//
//  1. A release wakes client A and publishes handedOver to the clients B and C.
//  2. A asks Redis, and takes the lock or registers again. If no caller of A waits any more, A wakes the next client.
//  3. If B and C receive no other message within their grace, which is wakeGrace at first, they ask Redis by themselves.
//  4. If they find the lock held, their grace doubles, up to maxWakeGrace. A message that wakes them, or says
//     that the lock is free for all, sets it back to wakeGrace.

const (
	// handedOver is published when a client was woken. Redisson reads it as the number 0, its message of a lock that is
	// free for all.
	handedOver = "00"
	// wakeGrace is how long the other clients leave the lock to the woken client. It doubles each time they ask in vain. It
	// is lengthened by up to half at random, so that the others do not all ask at the same moment.
	wakeGrace = 50 * time.Millisecond
	// maxWakeGrace bounds the grace. Not longer, because waiters poll a lock at about this interval anyway.
	maxWakeGrace = 2 * time.Second
)

// NewClientNumber returns a random number of 19 digits for a client. Redisson reads such a message as a number
// without a meaning.
func NewClientNumber() string { return strconv.FormatUint(1<<61|rand.Uint64()>>3, 10) }

// isWakeMessage returns true if a message is the number of a client, which wakes that client.
func isWakeMessage(message string) bool {
	return len(message) > len(handedOver) && !strings.Contains(message, " ")
}

// waitingClient is the state of a subscriber that is woken by the client's number. Its fields are guarded by the mutex of
// Subscriptions. The three booleans say what has happened since the subscriber last asked Redis.
type waitingClient struct {
	lock          string        // the key of the lock
	set           string        // the key of the set of clients that wait for the lock
	woken         bool          // the number was published
	freeForAll    bool          // the lock was free for all, or messages may have been missed
	handedToOther bool          // another client was woken
	grace         time.Duration // how long the lock is left to that client the next time
	recheck       *time.Timer   // signals the subscriber after the grace; nil before the first use
}

// SubscribeAsClient is Subscribe to broadcasts for a subscriber that is woken by the number of this client. The key set has
// the numbers of the clients that wait for the lock.
func (s *Subscriptions) SubscribeAsClient(channel, lock, set string) *Subscriber {
	return s.add(s.newClientSubscriber(lock, set), channel)
}

// SubscribeAsClientIfActive is SubscribeAsClient for a caller that has not asked Redis yet. It returns nil if the channel is
// not requested yet, see SubscribeIfActive.
func (s *Subscriptions) SubscribeAsClientIfActive(channel, lock, set string) *Subscriber {
	return s.addIfActive(channel, func() *Subscriber { return s.newClientSubscriber(lock, set) })
}

// newClientSubscriber returns a subscriber that belongs to no channel yet.
func (s *Subscriptions) newClientSubscriber(lock, set string) *Subscriber {
	return &Subscriber{C: make(chan struct{}, 1), client: &waitingClient{lock: lock, set: set, grace: wakeGrace}}
}

// CountWaitingClients returns how many subscribers of a channel are woken by the client's number.
func (s *Subscriptions) CountWaitingClients(channel string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch := s.channels[channel]; ch != nil {
		for sub := range ch.broadcast {
			if sub.client != nil {
				n++
			}
		}
	}
	return n
}

// RecheckAll notifies the subscribers of a channel that are woken by the client's number, so that all of them ask Redis.
func (s *Subscriptions) RecheckAll(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch := s.channels[channel]; ch != nil {
		for sub := range ch.broadcast {
			if sub.client != nil {
				sub.notifyLocked()
			}
		}
	}
}

// receive records a message. It returns true if the subscriber must be notified now, and false if another client was woken.
// Then the subscriber is notified after its grace, because otherwise all clients would ask at once, while the woken one has to
// be quick. The caller must hold the mutex of Subscriptions.
func (sub *Subscriber) receive(message string) bool {
	c := sub.client
	switch {
	case message == sub.subs.clientNumber:
		c.woken = true
	case isWakeMessage(message):
		return false
	case message == handedOver:
		c.handedToOther = true
		in := c.grace + rand.N(c.grace/2)
		if c.recheck == nil {
			c.recheck = time.AfterFunc(in, func() { keepalive.Signal(sub.C) })
		} else {
			c.recheck.Reset(in)
		}
		return false
	default:
		c.freeForAll = true
	}
	return true
}

// StartAsking records that the subscriber asks Redis now. It returns true if the client's number was published since the last
// call. It returns false for subscribers that are not woken by that number.
func (sub *Subscriber) StartAsking() (woken bool) {
	sub.subs.mu.Lock()
	defer sub.subs.mu.Unlock()
	c := sub.client
	if c == nil {
		return false
	}
	woken = c.woken
	if c.woken || c.freeForAll {
		c.grace = wakeGrace
	} else if c.handedToOther {
		c.grace = min(2*c.grace, maxWakeGrace)
	}
	c.woken, c.freeForAll, c.handedToOther = false, false, false
	c.stopRecheck()
	return woken
}

// stopRecheck stops the timer of the grace, if there is one. c may be nil.
func (c *waitingClient) stopRecheck() {
	if c != nil && c.recheck != nil {
		c.recheck.Stop()
	}
}
