package core

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errOverdue is the end of a call that got no connection soon.
var errOverdue = errors.New("no connection soon")

// leash bounds how long a call on the short way waits for a connection, whatever its context says: go-redis dials for as
// long as that takes.
type leash struct {
	context.Context
	end <-chan struct{}
}

func (l *leash) Done() <-chan struct{} { return l.end }

func (l *leash) Err() error {
	select {
	case <-l.end:
		return errOverdue
	default:
		return nil
	}
}

// leashes makes one at a time. Calls are answered long before they would be overdue, so no timer is set and stopped for
// each, which would wake threads of the runtime and cost a twentieth of the call's time: one goes off now and then, and
// sees who is there.
type leashes struct {
	mu    sync.Mutex
	end   chan struct{} // of the next call too, unless it is closed
	since time.Time     // when the present call was tied; zero if there is none
	timer *time.Timer
	armed bool
}

// tie puts a call on the leash.
func (l *leashes) tie(c *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end == nil {
		l.end = make(chan struct{})
	}
	if l.since = time.Now(); !l.armed {
		l.arm(briskConnect)
	}
	c.leash = leash{c.ctx, l.end}
	c.ctx = &c.leash
}

// untie takes it off.
func (l *leashes) untie(c *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.since = time.Time{}
	c.ctx = c.leash.Context
}

func (l *leashes) arm(d time.Duration) {
	l.armed = true
	if l.timer == nil {
		l.timer = time.AfterFunc(d, l.look)
		return
	}
	l.timer.Reset(d)
}

// look ends the present call if it is overdue, or comes back when it would be.
func (l *leashes) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed = false
	if l.since.IsZero() {
		return
	}
	if left := briskConnect - time.Since(l.since); left > 0 {
		l.arm(left)
		return
	}
	close(l.end)
	l.end = nil
}
