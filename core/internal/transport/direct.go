package transport

import (
	"context"
	"errors"
	"net"
	"sync"
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

// errConnectTimeout is the error of a connectContext: a command on the direct path got no connection within
// directConnectTimeout.
var errConnectTimeout = errors.New("no connection soon")

// connectContext is the context of a command on the direct path. It has the values and the deadline of the caller's
// context. It ends when connectDeadline expires, and only then. Why: go-redis retries the dial for as long as its own
// limits allow, whatever deadline the caller's context has.
type connectContext struct {
	context.Context
	done <-chan struct{}
}

// Done returns the channel that connectDeadline closes.
func (c *connectContext) Done() <-chan struct{} { return c.done }

// Err returns errConnectTimeout after connectDeadline has expired, nil before.
func (c *connectContext) Err() error {
	select {
	case <-c.done:
		return errConnectTimeout
	default:
		return nil
	}
}

// connectDeadline ends the context of the one command on the direct path after directConnectTimeout. The zero value is
// ready to use.
//
// Why not a timer for each command: setting and stopping a timer wakes threads of the runtime and costs a twentieth of
// the command's time. So one timer serves all commands:
//
//  1. watch sets the timer for the first command, and unwatch leaves it set.
//  2. When the timer fires, checkExpired looks at the command that is watched then.
//  3. If that command has time left, the timer is set for the rest. If no command is watched, the timer is left unset
//     until the next one.
type connectDeadline struct {
	mu sync.Mutex

	// Guarded by mu.
	done  chan struct{} // of the present command; the next one gets it too, unless it was closed
	since time.Time     // when watch was called for the present command; zero if there is none
	timer *time.Timer   // nil before the first command
	armed bool          // true if the timer will fire
}

// watch sets the deadline of c by putting a connectContext in place of its context. The caller must call unwatch, and must
// not watch another command before.
func (d *connectDeadline) watch(c *Command) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done == nil {
		d.done = make(chan struct{})
	}
	if d.since = time.Now(); !d.armed {
		d.armLocked(directConnectTimeout)
	}
	c.connectCtx = connectContext{c.ctx, d.done}
	c.ctx = &c.connectCtx
}

// unwatch removes the deadline of c, and restores its context.
func (d *connectDeadline) unwatch(c *Command) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.since = time.Time{}
	c.ctx = c.connectCtx.Context
}

// armLocked sets the timer.
func (d *connectDeadline) armLocked(in time.Duration) {
	d.armed = true
	if d.timer == nil {
		d.timer = time.AfterFunc(in, d.checkExpired)
		return
	}
	d.timer.Reset(in)
}

// checkExpired ends the context of the present command if its deadline has passed, and otherwise sets the timer for the rest.
// It does nothing if there is no command.
func (d *connectDeadline) checkExpired() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.armed = false
	if d.since.IsZero() {
		return
	}
	if left := directConnectTimeout - time.Since(d.since); left > 0 {
		d.armLocked(left)
		return
	}
	close(d.done)
	d.done = nil
}

// withTimeout returns a view of rdb with another read timeout. It uses the connection pool of rdb, and the hooks that
// rdb has now.
//
// Why a [redis.Conn]: the copies that [redis.Client.WithTimeout] makes have no hooks, but a Conn has those of its
// client. The innermost hook of this Conn sends every command through such a copy. So the Conn itself never takes a
// connection from the pool.
func withTimeout(rdb *redis.Client, timeout time.Duration) *redis.Conn {
	conn := rdb.Conn()
	conn.AddHook(redirectHook{rdb.WithTimeout(timeout)})
	return conn
}

// redirectHook is a [redis.Hook] that sends commands through another client. It has to be the last hook that is added, because
// the hooks behind it are not called.
type redirectHook struct{ target *redis.Client }

// DialHook changes nothing, because the client of the hook never dials.
func (redirectHook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook sends a command through the target.
func (h redirectHook) ProcessHook(redis.ProcessHook) redis.ProcessHook { return h.target.Process }

// ProcessPipelineHook sends a pipeline through the target.
func (h redirectHook) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		pipe := h.target.Pipeline()
		if err := pipe.BatchProcess(ctx, cmds...); err != nil {
			return err
		}
		_, err := pipe.Exec(ctx)
		return err
	}
}
