package transport

import (
	"context"
	"errors"
	"sync"
	"time"
)

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
