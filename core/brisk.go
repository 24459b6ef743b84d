package core

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// quickTrip is the longest time of a round trip after which the next lone command goes on its caller's goroutine.
	quickTrip = 5 * time.Millisecond
	// briskTimeout is how long such a command waits for its answer. Then it is sent once more, as a command that can be
	// left behind. Whatever ends sooner would cost more than it is worth: timers that go off often disturb the round trips.
	briskTimeout = 100 * time.Millisecond
	// briskConnect is how long it waits for a connection before that, with the same consequence. Both together are how
	// much later than its context was cancelled a call may end.
	briskConnect = 100 * time.Millisecond
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
	rdb   *redis.Client // nil if there is no short way
	start time.Time     // zero of its clock, which may stand still in a suspend: to read that of leases is a system call
	until atomic.Int64  // by that clock: the server is known to be quick
	copy  atomic.Pointer[hasty]

	leashes leashes // of whoever took off
}

// hasty is the user's client, or stands for it with a short timeout.
type hasty struct {
	sender
	made time.Duration
}

// sender is what sends a single command.
type sender interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

func (b *brisk) now() time.Duration { return time.Since(b.start) }

// landed takes in how long a flight took.
func (b *brisk) landed(departed time.Duration, err error) {
	if b.rdb == nil {
		return
	}
	now, until := b.now(), time.Duration(0)
	if replied(err) && now-departed <= quickTrip {
		until = now + briskMemory
	}
	b.until.Store(int64(until))
}

// takeOff reports whether a call may take the short way, in which case it owes a land to its lane. It may not if the
// caller must be able to leave sooner, or if it has company on the way.
func (b *brisk) takeOff(c *call) bool {
	if b.rdb == nil || c.ack.wanted() {
		return false
	}
	if b.now() >= time.Duration(b.until.Load()) || !c.way.calls.takeOff() {
		return false
	}
	end, ends := c.ctx.Deadline()
	ticket, _ := c.ctx.Value(ticketKey{}).(*ticket)
	if ends && time.Until(end) < briskConnect+briskTimeout || ticket != nil || c.ctx.Err() != nil {
		c.way.calls.land()
		return false
	}
	return true
}

// client returns the user's one with a short timeout.
func (b *brisk) client(now time.Duration) sender {
	h := b.copy.Load()
	if h == nil || now-h.made >= briskAge {
		h = &hasty{b.rdb, now}
		if limit := b.rdb.Options().ReadTimeout; limit <= 0 || limit > briskTimeout {
			h.sender = withTimeout(b.rdb, briskTimeout)
		}
		b.copy.Store(h)
	}
	return h.sender
}

// flyBriskly sends a call that took off on the short way.
func (e *executor) flyBriskly(c *call) {
	defer c.way.calls.land()
	departed := e.brisk.now()
	e.sendBriskly(c, departed)
	e.brisk.landed(departed, c.err)
	if e.onReply != nil && replied(c.err) {
		e.onReply()
	}
}

func (e *executor) sendBriskly(c *call, now time.Duration) {
	defer catch(c)
	e.brisk.leashes.tie(c)
	defer e.brisk.leashes.untie(c)
	sendAlone(e.brisk.client(now), c)
}

// timedOut reports whether there was no connection, or nothing heard on it, for too long.
func timedOut(err error) bool {
	if err == nil {
		return false
	}
	var timeout net.Error
	return errors.Is(err, errOverdue) || errors.As(err, &timeout) && timeout.Timeout() && !errors.Is(err, context.DeadlineExceeded)
}
