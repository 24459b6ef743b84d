package core

import (
	"context"
	"errors"
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

// leashes makes one at a time, mostly out of the same parts.
type leashes struct {
	end   chan struct{}
	timer *time.Timer // closes end
}

// tie puts a call on the leash.
func (l *leashes) tie(c *call) {
	if l.end == nil {
		end := make(chan struct{})
		l.end, l.timer = end, time.AfterFunc(briskConnect, func() { close(end) })
	} else {
		l.timer.Reset(briskConnect)
	}
	c.leash = leash{c.ctx, l.end}
	c.ctx = &c.leash
}

// untie takes it off.
func (l *leashes) untie(c *call) {
	c.ctx = c.leash.Context
	if !l.timer.Stop() {
		l.end = nil // it has been closed, or is about to be
	}
}
