package asynqlock

import (
	"context"
	"time"
)

// enter puts a task into the line of its key. Without Redis it does without.
func (e *exclusive) enter(v *visit) {
	if e.line == nil || v.task.ID == "" {
		return
	}
	defer v.surviveClient()
	ctx, cancel := context.WithTimeout(v.ctx, askTimeout)
	defer cancel()
	at, err := e.line.enter(ctx, v)
	if err != nil {
		v.failed("line", err)
		return
	}
	v.spot, v.lined = at, true
	if e.line.near(v) {
		v.waits = placeTime
	}
}

// leave takes a task that has run out of the line, and makes the next ones due.
func (e *exclusive) leave(r *run) {
	v := r.visit
	if !v.lined {
		return
	}
	defer v.surviveClient()
	e.line.pace.add(v.hash, time.Since(r.began))
	w := workersOf(v.ctx)
	width := e.line.width(v.hash, w)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(v.ctx), askTimeout)
	defer cancel()
	next, err := e.line.leave(ctx, v.hash, 0, width, member(v.task.Queue, v.task.ID))
	if err != nil {
		v.failed("line", err)
	}
	if len(next) == 0 {
		return
	}
	e.line.relays.watch(v.hash, func(ctx context.Context) []string {
		defer v.surviveClient()
		next, err := e.line.leave(ctx, v.hash, 0, width)
		if err != nil {
			return nil
		}
		return e.line.pass(ctx, v.hash, next, w)
	})
	e.runs.come()
	go func() {
		defer e.runs.leave()
		defer v.surviveClient()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
		defer cancel()
		e.line.pass(ctx, v.hash, next, w)
	}()
}

// surviveClient recovers from a panic of the user's Redis client or its hooks. It must neither end the process nor turn
// a run that has succeeded into a failure, which asynq would repeat.
func (v *visit) surviveClient() {
	if p := recover(); p != nil {
		v.warn("holdfast: asynqlock: the guard of a task has failed", "line", "operation", "line", "panic", p)
	}
}
