package pubsub

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/lifecycle"
)

// Clients that wait for a Mutex are woken one at a time (wake-one). Each has a number in a set in Redis. A release takes
// one number out and publishes two messages: the number, which wakes that client, and handedOver, which the others
// receive; see lua/release.lua. Why: otherwise every release would wake all clients, and all but one in vain.
//
// The woken client may have crashed. So if no other release is announced within wakeGrace, the others ask by themselves.

const (
	// handedOver is published when a client was woken. Redisson reads it as the number 0, its message of a lock that is
	// free for all.
	handedOver = "00"
	// wakeGrace is how long the others leave the lock to the woken client, unless another release is announced. It doubles
	// each time they asked in vain.
	wakeGrace = 50 * time.Millisecond
	// maxWakeGrace bounds the grace. Why: waiters poll a lock at about this interval anyway.
	maxWakeGrace = 2 * time.Second
)

// NewClientNumber returns the number of a client. Redisson reads it as a number without a meaning.
func NewClientNumber() string { return strconv.FormatUint(1<<61|rand.Uint64()>>3, 10) }

// isWakeMessage reports whether a message is the number of a client, which wakes that client.
func isWakeMessage(message string) bool {
	return len(message) > len(handedOver) && !strings.Contains(message, " ")
}

// waitingClient is the state of a subscriber that is woken by the client's number. Guarded by the mutex of subscriptions.
type waitingClient struct {
	number        string
	lock          string // with set, the keys of wakeNext
	set           string
	woken         bool          // its number was published
	freeForAll    bool          // the lock was free for all, or messages may have been missed
	handedToOther bool          // another client was woken since this one asked
	grace         time.Duration // how long the lock is left to that client
	recheck       *time.Timer   // signals the subscriber after the grace; nil before the first use
}

// SubscribeAsClient adds a subscriber to the channel of a lock that is woken by the number of this client. The key set has
// the numbers of the clients that wait for the lock.
func (s *Subscriptions) SubscribeAsClient(channel, lock, set string) *Subscriber {
	return s.add(s.newClientSubscriber(lock, set), channel)
}

// SubscribeAsClientIfActive is SubscribeAsClient for a caller that has not asked Redis yet, see SubscribeIfActive.
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

func (s *Subscriptions) newClientSubscriber(lock, set string) *Subscriber {
	return &Subscriber{c: make(chan struct{}, 1), client: &waitingClient{number: s.clientNumber, lock: lock, set: set, grace: wakeGrace}}
}

// CountWaitingClients counts the subscribers of a channel that are woken by the client's number.
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

// RecheckAll has the subscribers of a channel ask that are woken by the client's number.
func (s *Subscriptions) RecheckAll(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch := s.channels[channel]; ch != nil {
		for sub := range ch.broadcast {
			if sub.client != nil {
				sub.client.freeForAll = true
				lifecycle.Signal(sub.c)
			}
		}
	}
}

// receive records a message, and reports whether the subscriber must ask now. It returns false if another client was woken.
// Why: with a busy lock all clients would ask, just when one of them has to be quick.
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
			c.recheck = time.AfterFunc(in, func() { lifecycle.Signal(sub.c) })
		} else {
			c.recheck.Reset(in)
		}
		return false
	default:
		c.freeForAll = true
	}
	return true
}

// StartAsking records that the subscriber asks Redis now. It reports whether its number was published since the last time.
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

// stopRecheck stops the timer of the grace, if there is one.
func (c *waitingClient) stopRecheck() {
	if c != nil && c.recheck != nil {
		c.recheck.Stop()
	}
}
