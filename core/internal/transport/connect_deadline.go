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

func (l *connectContext) Done() <-chan struct{} { return l.done }

func (l *connectContext) Err() error {
	select {
	case <-l.done:
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
func (l *connectDeadline) watch(c *Command) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done == nil {
		l.done = make(chan struct{})
	}
	if l.since = time.Now(); !l.armed {
		l.armLocked(directConnectTimeout)
	}
	c.connectCtx = connectContext{c.ctx, l.done}
	c.ctx = &c.connectCtx
}

// unwatch removes the deadline of c, and restores its context.
func (l *connectDeadline) unwatch(c *Command) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.since = time.Time{}
	c.ctx = c.connectCtx.Context
}

func (l *connectDeadline) armLocked(d time.Duration) {
	l.armed = true
	if l.timer == nil {
		l.timer = time.AfterFunc(d, l.checkExpired)
		return
	}
	l.timer.Reset(d)
}

// checkExpired ends the context of the present command if its deadline has passed, and sets the timer otherwise.
func (l *connectDeadline) checkExpired() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed = false
	if l.since.IsZero() {
		return
	}
	if left := directConnectTimeout - time.Since(l.since); left > 0 {
		l.armLocked(left)
		return
	}
	close(l.done)
	l.done = nil
}
