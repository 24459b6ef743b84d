package core

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// Clients that wait for a Mutex are called one by one: a release tells all of them that the lock was given on, and one
// that it is its turn, see lua/release.lua. Otherwise each release would make all clients ask, and all but one in vain.
// Nobody depends on who was called: if no release is heard for a while after one was, the others look for themselves.

const (
	// everybodysTurn is what is said when the lock is free for all.
	everybodysTurn = "0"
	// somebodysTurn is the same to Redisson's clients, for which it is a number; ours wait.
	somebodysTurn = "00"
	// callGrace is how long who was called gets before the others look, if no other release is heard. It is doubled each
	// time they looked in vain.
	callGrace = 50 * time.Millisecond
)

// newCaller returns the number of a client: one that Redisson reads as a number, and that means nothing to it.
func newCaller() string { return strconv.FormatUint(1<<61|rand.Uint64()>>3, 10) }

// isCall reports whether a message calls a client.
func isCall(message string) bool {
	return len(message) > len(somebodysTurn) && !strings.Contains(message, " ")
}

// caller is how a listener that waits to be called stands. It is guarded by the listeners' mutex.
type caller struct {
	number string
	keys   keys
	turn   bool          // it was called
	open   bool          // the lock was free for all, or messages may have been missed
	given  time.Time     // when the lock was last given to somebody else since it looked; zero if it was not
	grace  time.Duration // how long that is left alone
}

// calls starts to listen to a channel as the client of that number.
func (s *listeners) calls(k keys) *listener {
	return s.listen(s.newCaller(k), k.channel)
}

// callsJoining is calls for somebody who has not looked yet, see joining.
func (s *listeners) callsJoining(k keys) *listener {
	return s.join(s.newCaller(k), k.channel)
}

func (s *listeners) newCaller(k keys) *listener {
	return &listener{c: make(chan struct{}, 1), caller: &caller{number: s.number, keys: k, grace: callGrace}}
}

// pass calls the next client, because this one was called when nobody waited any more.
func (s *server) pass(k keys) {
	s.keeper.background(func(ctx context.Context) {
		_, _ = s.exec.do(ctx, passScript, []string{k.lock, k.callers}, s.verb) // otherwise the others look
	})
}

// hear takes in a message, and reports whether there is something to do about it now.
func (c *caller) hear(message string) bool {
	switch {
	case message == c.number:
		c.turn = true
	case isCall(message):
		return false
	case message == somebodysTurn:
		first := c.given.IsZero()
		c.given = time.Now()
		return first // after which the listener looks at the clock by itself
	default:
		c.open = true
	}
	return true
}

// idle returns for how long there is nothing to do yet, after news or a look at the clock; zero says that it is time to
// ask.
func (l *listener) idle() time.Duration {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	c := l.caller
	if c == nil || c.turn || c.open || c.given.IsZero() {
		return 0
	}
	left := c.grace - time.Since(c.given)
	if left <= 0 {
		return 0
	}
	return left + rand.N(c.grace/2)
}

// asks notes that the listener asks now, and reports whether it was called for that.
func (l *listener) asks() (called bool) {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	c := l.caller
	if c == nil {
		return false
	}
	called = c.turn
	if c.turn || c.open {
		c.grace = callGrace
	} else if !c.given.IsZero() {
		c.grace = min(2*c.grace, pollHeard)
	}
	c.turn, c.open, c.given = false, false, time.Time{}
	return called
}
