package transport

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
)

// Clients that wait for a Mutex are woken one at a time (wake-one). Each has a number in a set in Redis. A release takes
// one number out and publishes two messages: the number, which wakes that client, and handedOver, which the others
// receive; see internal/script/lua/lock/wake_next.lua. Why: otherwise every release would wake all clients, and all but one
// in vain.
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
	// maxWakeGrace bounds the grace. Why not longer: waiters poll a lock at about this interval anyway.
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
	number        string        // of this client
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
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.channels[channel] == nil {
		return nil
	}
	sub := s.newClientSubscriber(lock, set)
	s.addLocked(sub, channel)
	return sub
}

// newClientSubscriber returns a subscriber that belongs to no channel yet.
func (s *Subscriptions) newClientSubscriber(lock, set string) *Subscriber {
	return &Subscriber{c: make(chan struct{}, 1), client: &waitingClient{number: s.clientNumber, lock: lock, set: set, grace: wakeGrace}}
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
				sub.client.freeForAll = true
				keepalive.Signal(sub.c)
			}
		}
	}
}

// receive records a message. It returns true if the subscriber must be notified now, and false if another client was woken.
// Then the subscriber is notified after its grace. Why: otherwise all clients would ask at once, while the woken one has to
// be quick. The caller must hold the mutex of Subscriptions.
func (sub *Subscriber) receive(message string) bool {
	c := sub.client
	switch {
	case message == c.number:
		c.woken = true
	case isWakeMessage(message):
		return false
	case message == handedOver:
		c.handedToOther = true
		in := c.grace + rand.N(c.grace/2)
		if c.recheck == nil {
			c.recheck = time.AfterFunc(in, func() { keepalive.Signal(sub.c) })
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
