package core

import (
	"context"
	"errors"
	"net"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// quickTrip is the longest time of a round trip after which the next lone command goes on its caller's goroutine.
	quickTrip = 5 * time.Millisecond
	// briskTimeout is how long such a command waits for its answer: that is how much later than its context it may end.
	// Then it is sent once more, as a command that can be left behind.
	briskTimeout = 40 * time.Millisecond
	// briskMemory is for how long one quick answer lets others be expected.
	briskMemory = time.Second
	// briskAge is how long the client with the short timeout is used: hooks may be added to the user's at any time.
	briskAge = time.Second
)

// brisk is the short way for a lone command: without handing it to another goroutine and its answer back, which costs
// more than all else that a lock adds to a round trip. But nobody can leave before the answer then, so it is for a
// server that answers quickly.
//
// It is for one server, not for a Cluster, where a single command may be sent to several masters one after the other.
type brisk struct {
	now   clock
	rdb   *redis.Client // nil if there is no short way
	until atomic.Int64  // an instant: the server is known to be quick
	copy  atomic.Pointer[hasty]
}

// hasty is the user's client with a short timeout, on the same connections.
type hasty struct {
	rdb   *redis.Client // nil if there are hooks
	plain bool          // the user's client itself waits for a few seconds at most
	made  instant
}

// landed takes in how long a flight took.
func (b *brisk) landed(sentAt instant, err error) {
	if b.rdb == nil {
		return
	}
	now, until := b.now(), instant(0)
	if replied(err) && now.sub(sentAt) <= quickTrip {
		until = now.add(briskMemory)
	}
	b.until.Store(int64(until))
}

// takeOff reports whether a call may take the short way, in which case it owes a land to its lane. It may not if the
// caller must be able to leave sooner, or if it has company on the way.
func (b *brisk) takeOff(c *call) bool {
	if b.rdb == nil || c.ack.wanted() {
		return false
	}
	if c.sentAt = b.now(); c.sentAt >= instant(b.until.Load()) || b.client(c) == nil {
		return false
	}
	if !c.way.calls.takeOff() {
		return false
	}
	end, ends := c.ctx.Deadline()
	ticket, _ := c.ctx.Value(ticketKey{}).(*ticket)
	if ends && time.Until(end) < briskTimeout || ticket != nil || c.ctx.Err() != nil {
		c.way.calls.land()
		return false
	}
	return true
}

// client returns the one for a call, nil if there is none. A copy of go-redis has no hooks, and those of the user have to
// see every command: then only those calls go the short way whose callers cannot leave before the user's own timeout.
func (b *brisk) client(c *call) *redis.Client {
	h := b.copy.Load()
	if h == nil || c.sentAt.sub(h.made) >= briskAge {
		h = b.newHasty(c.sentAt)
		b.copy.Store(h)
	}
	if h.rdb == nil && h.plain && c.ctx.Done() == nil {
		return b.rdb
	}
	return h.rdb
}

func (b *brisk) newHasty(now instant) *hasty {
	limit := b.rdb.Options().ReadTimeout
	h := &hasty{made: now, plain: limit > 0 && limit <= releaseTimeout}
	switch {
	case hooked(b.rdb):
	case limit > 0 && limit <= briskTimeout:
		h.rdb = b.rdb
	default:
		h.rdb = b.rdb.WithTimeout(briskTimeout)
	}
	return h
}

// hooked reports whether a client has hooks, also if that cannot be found out: go-redis does not tell.
func hooked(rdb *redis.Client) bool {
	hooks := reflect.ValueOf(rdb).Elem().FieldByName("slice")
	return hooks.Kind() != reflect.Slice || hooks.Len() > 0
}

// flyBriskly sends a call that took off on the short way.
func (e *executor) flyBriskly(c *call) {
	defer c.way.calls.land()
	e.sendBriskly(c)
	e.brisk.landed(c.sentAt, c.err)
	if e.onReply != nil && replied(c.err) {
		e.onReply()
	}
}

func (e *executor) sendBriskly(c *call) {
	defer catch(c)
	sendAlone(e.brisk.client(c), c)
}

// timedOut reports whether a connection has said nothing for too long.
func timedOut(err error) bool {
	if err == nil {
		return false
	}
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout() && !errors.Is(err, context.DeadlineExceeded)
}
