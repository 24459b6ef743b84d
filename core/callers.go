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
	// somebodysTurn is what is said when a client was called. To Redisson's it is the number 0, which is what is said when
	// the lock is free for all.
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
	lock   string // the keys of pass
	set    string
	turn   bool          // it was called
	open   bool          // the lock was free for all, or messages may have been missed
	given  bool          // to somebody else, since it asked
	grace  time.Duration // for how long that is left alone
	look   *time.Timer   // signals the listener after the grace; nil before it was needed
}

// calls starts to listen to a channel as the client of that number.
func (s *listeners) calls(k keys) *listener {
	return s.listen(s.newCaller(k), k.channel)
}

// callsJoining is calls for somebody who has not looked yet, see joining.
func (s *listeners) callsJoining(k keys) *listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.topics[k.channel] == nil {
		return nil
	}
	l := s.newCaller(k)
	s.add(l, k.channel)
	return l
}

func (s *listeners) newCaller(k keys) *listener {
	return &listener{c: make(chan struct{}, 1), caller: &caller{number: s.number, lock: k.lock, set: k.callers, grace: callGrace}}
}

// pass calls the next client, because this one was called when nobody waited any more.
func (s *server) pass(c *caller) {
	s.keeper.background(func(ctx context.Context) {
		_, _ = s.exec.do(ctx, passScript, []string{c.lock, c.set}, s.verb) // otherwise the others look
	})
}

// uncall takes the client out of those to be called if the request has left its line empty: a release would call a
// client that does not wait, and the others would look only some time later.
func (r *request) uncall(t *turn) {
	m, plain := r.protocol.(mutex)
	if !plain || !t.uncalled {
		return
	}
	k, number := r.hold.keys, r.keeper.caller
	r.keeper.background(func(ctx context.Context) {
		if m.server.listen.callers(k.channel) > 0 {
			return // of another line
		}
		ctx, cancel := context.WithTimeout(ctx, firstAnswer)
		defer cancel()
		_, _ = m.server.exec.do(ctx, passScript, []string{k.lock, k.callers}, m.server.verb, number)
		m.server.listen.lookAgain(k.channel) // who came meanwhile was taken out too
	})
}

// callers counts who waits on a channel to be called.
func (s *listeners) callers(channel string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.topics[channel]; t != nil {
		for l := range t.everybody {
			if l.caller != nil {
				n++
			}
		}
	}
	return n
}

// lookAgain lets those look who wait on a channel to be called.
func (s *listeners) lookAgain(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.topics[channel]; t != nil {
		for l := range t.everybody {
			if l.caller != nil {
				l.caller.open = true
				signal(l.c)
			}
		}
	}
}

// hear takes in a message, and reports whether there is something to do about it now. That somebody else was called
// wakes nobody: with a busy lock that would be all of the clients, at the very moment when one of them is in a hurry.
func (l *listener) hear(message string) bool {
	c := l.caller
	switch {
	case message == c.number:
		c.turn = true
	case isCall(message):
		return false
	case message == somebodysTurn:
		c.given = true
		in := c.grace + rand.N(c.grace/2)
		if c.look == nil {
			c.look = time.AfterFunc(in, func() { signal(l.c) })
		} else {
			c.look.Reset(in)
		}
		return false
	default:
		c.open = true
	}
	return true
}

// asks notes that the listener asks now. It reports whether it was called for that.
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
	} else if c.given {
		c.grace = min(2*c.grace, pollHeard)
	}
	c.turn, c.open, c.given = false, false, false
	c.rest()
	return called
}

// rest calls off the look.
func (c *caller) rest() {
	if c != nil && c.look != nil {
		c.look.Stop()
	}
}
