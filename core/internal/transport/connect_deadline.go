package transport

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errConnectTimeout is the error of a command on the direct path that got no connection within directConnectTimeout.
var errConnectTimeout = errors.New("no connection soon")

// connectContext is the context of a command on the direct path. It ends when connectDeadline expires, and only then.
// Why: go-redis retries the dial for as long as its own limits allow, whatever deadline the caller's context has.
type connectContext struct {
	context.Context
	done <-chan struct{}
}

func (c *connectContext) Done() <-chan struct{} { return c.done }

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
// the command's time. One timer serves all commands. It fires now and then, and checks the command that is there then.
type connectDeadline struct {
	mu    sync.Mutex
	done  chan struct{} // of the next command too, unless it is closed
	since time.Time     // when the present command was given to watch; zero if there is none
	timer *time.Timer
	armed bool
}

// watch sets the deadline of c. The caller must call unwatch.
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

func (d *connectDeadline) armLocked(in time.Duration) {
	d.armed = true
	if d.timer == nil {
		d.timer = time.AfterFunc(in, d.checkExpired)
		return
	}
	d.timer.Reset(in)
}

// checkExpired ends the context of the present command if its deadline has passed, and sets the timer otherwise.
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
