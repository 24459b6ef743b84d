package asynqlock

import (
	"context"
	"errors"
	"time"
)

// enter puts a task into the line of its key. Without Redis it does without.
func (e *exclusive) enter(v *visit) {
	if e.line == nil || v.task.ID == "" {
		return
	}
	ctx, cancel := context.WithTimeout(v.ctx, askTimeout)
	defer cancel()
	at, err := e.line.enter(ctx, v.hash, v.task)
	if err != nil {
		v.failed("line", err)
		return
	}
	v.spot, v.lined = at, true
	if e.line.near(at, workersOf(v.ctx)) {
		v.waits = placeTime
	}
}

// leave takes a task that has run out of the line, and makes the next ones due.
func (e *exclusive) leave(r *run) {
	v := r.visit
	if !v.lined {
		return
	}
	e.line.pace.add(time.Since(r.began))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(v.ctx), askTimeout)
	width := e.line.width(workersOf(v.ctx))
	next, err := e.line.leave(ctx, v.hash, width, member(v.task.Queue, v.task.ID))
	if err != nil || len(next) == 0 {
		cancel()
		if err != nil {
			v.failed("line", err)
		}
		return
	}
	e.runs.come()
	go func() {
		defer e.runs.leave()
		defer cancel()
		e.line.pass(ctx, v.hash, next, workersOf(v.ctx))
	}()
}

// back is told of a task that goes back into the line. asynq archives it on its last attempt; should nothing call it,
// it is taken out of the archive when others would come again by themselves.
func (e *exclusive) back(v *visit, err error) {
	if !v.lined {
		return
	}
	m := member(v.task.Queue, v.task.ID)
	e.line.back(m)
	var deferred *DeferredError
	if v.task.last() && errors.As(err, &deferred) {
		time.AfterFunc(deferred.RetryIn, func() { e.line.call(m) })
	}
}
