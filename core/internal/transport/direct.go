package transport

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// fastRTTLimit is the longest round trip after which the next command may be sent on its caller's goroutine.
	fastRTTLimit = 5 * time.Millisecond
	// directTimeout is the read timeout on the direct path. A command that exceeds it is sent once more through the batch
	// queue, where its caller can return before the answer. Why not shorter: timers that fire often disturb round trips.
	directTimeout = 100 * time.Millisecond
	// directConnectTimeout bounds the wait for a connection, with the same consequence. The sum of both timeouts is how
	// long after the cancellation of its context a command on the direct path may return.
	directConnectTimeout = 100 * time.Millisecond
	// fastRTTMemory is for how long one round trip within fastRTTLimit opens the direct path.
	fastRTTMemory = time.Second
	// shortTimeoutClientTTL limits the age of the client with the short timeout. Why: the user may add hooks at any time,
	// and the client has only those that were there when it was made.
	shortTimeoutClientTTL = time.Second
)

// directPath sends a command on its caller's goroutine if no other command is queued or in flight.
//
// Why: the hand-over to a sender goroutine and back costs more than all else that a lock adds to a round trip. But a
// caller on the direct path cannot return before the answer. So only a server that has answered quickly of late is used
// this way. A Cluster is not, because go-redis may send one command to several masters one after the other.
type directPath struct {
	rdb          *redis.Client // nil if there is no direct path
	start        time.Time     // zero point of now
	fastUntil    atomic.Int64  // until when the direct path is open, in nanoseconds by now
	shortTimeout atomic.Pointer[shortTimeoutClient]

	deadline connectDeadline // of the command on the direct path
}

// shortTimeoutClient is the user's client if its read timeout is short enough. Otherwise it is a view of that client with
// a read timeout of directTimeout.
type shortTimeoutClient struct {
	processor
	made time.Duration // by directPath.now
}

// processor sends a single command.
type processor interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// now returns the time since start. It may stop while the host is suspended. Why not the clock of leases: to read it is a
// system call.
func (p *directPath) now() time.Duration { return time.Since(p.start) }

// observeRTT records the round trip of a command that was sent at sentAt. A round trip within fastRTTLimit opens the direct
// path for fastRTTMemory. A longer one, or none, closes the path.
func (p *directPath) observeRTT(sentAt time.Duration, replied bool) {
	if p.rdb == nil {
		return
	}
	now, until := p.now(), time.Duration(0)
	if replied && now-sentAt <= fastRTTLimit {
		until = now + fastRTTMemory
	}
	p.fastUntil.Store(int64(until))
}

// tryReserve decides whether c may be sent on the caller's goroutine. If it returns true, the batch queue of c is reserved
// and the caller must call unreserve on that queue. It returns false if
//   - c waits for replicas or belongs to a batch group;
//   - the server has not answered within fastRTTLimit lately;
//   - other commands are queued or in flight;
//   - the context has ended, or its deadline is nearer than the timeouts of the direct path.
func (p *directPath) tryReserve(c *Command) bool {
	if p.rdb == nil || c.Ack.Wanted() {
		return false
	}
	if p.now() >= time.Duration(p.fastUntil.Load()) || !c.node.commands.tryReserve() {
		return false
	}
	end, ends := c.ctx.Deadline()
	member, _ := c.ctx.Value(groupMemberKey{}).(*groupMember)
	if ends && time.Until(end) < directConnectTimeout+directTimeout || member != nil || c.ctx.Err() != nil {
		c.node.commands.unreserve()
		return false
	}
	return true
}

// client returns the user's client with a read timeout of at most directTimeout. It makes a new view each
// shortTimeoutClientTTL.
func (p *directPath) client(now time.Duration) processor {
	c := p.shortTimeout.Load()
	if c == nil || now-c.made >= shortTimeoutClientTTL {
		c = &shortTimeoutClient{p.rdb, now}
		if limit := p.rdb.Options().ReadTimeout; limit <= 0 || limit > directTimeout {
			c.processor = withTimeout(p.rdb, directTimeout)
		}
		p.shortTimeout.Store(c)
	}
	return c.processor
}

// sendDirect sends a command on the direct path. The caller must have called tryReserve with true as its result; sendDirect
// calls unreserve.
func (e *Executor) sendDirect(c *Command) {
	defer c.node.commands.unreserve()
	sentAt := e.direct.now()
	e.sendWithConnectDeadline(c, sentAt)
	e.noteReply(c, sentAt)
	e.judge(c)
}

// sendWithConnectDeadline sends a command with a context that ends if there is no connection in time.
func (e *Executor) sendWithConnectDeadline(c *Command, now time.Duration) {
	defer catch(c)
	e.direct.deadline.watch(c)
	defer e.direct.deadline.unwatch(c)
	sendSingle(e.direct.client(now), c)
}

// timedOut returns true if err is a timeout of the connect deadline or of a connection. It returns false for the deadline of
// a context.
func timedOut(err error) bool {
	if err == nil {
		return false
	}
	var timeout net.Error
	return errors.Is(err, errConnectTimeout) || errors.As(err, &timeout) && timeout.Timeout() && !errors.Is(err, context.DeadlineExceeded)
}
