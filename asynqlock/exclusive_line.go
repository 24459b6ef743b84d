package asynqlock

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/outage"
)

// enter puts a task into the line of its key. Without Redis it does without.
func (e *exclusive) enter(v *visit) {
	if e.line == nil || v.task.ID == "" {
		return
	}
	defer v.surviveClient()
	ctx, cancel := context.WithTimeout(v.ctx, outage.AskTimeout)
	defer cancel()
	at, err := e.line.enter(ctx, v)
	if err != nil {
		v.lineFailed(v.ctx, err)
		return
	}
	v.spot, v.lined = at, true
	if e.line.near(v) {
		v.waits = placeTime
	}
}

// begun notes that a task in a line runs: its end is what calls the next ones.
func (e *exclusive) begun(r *run) {
	v := r.visit
	if !v.lined {
		return
	}
	m := member(v.task.Queue, v.task.ID)
	e.line.running.Store(m, nil)
	e.line.relays.begin(v.hash, m, v.limit, e.callAgain(v))
}

// callAgain returns what makes the next tasks due, so many at most, should those that were called not come.
func (e *exclusive) callAgain(v *visit) func(ctx context.Context, most int) []string {
	w := workersOf(v.ctx)
	return func(ctx context.Context, most int) []string {
		defer v.surviveClient()
		next, err := e.line.leave(ctx, v.hash, 0, e.line.width(v.hash, v.limit, w))
		if err != nil {
			return nil
		}
		return e.line.pass(ctx, v, next, min(max(w.free(v.hash), 1), most))
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
	m := member(v.task.Queue, v.task.ID)
	e.line.running.Delete(m)
	w := workersOf(v.ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(v.ctx), outage.AskTimeout)
	defer cancel()
	next, err := e.line.leave(ctx, v.hash, 0, e.line.width(v.hash, v.limit, w), m)
	if err != nil {
		v.lineFailed(r.values(), err)
	}
	e.line.relays.end(v.hash, v.limit, len(next) > 0 || err != nil, e.callAgain(v))
	if len(next) == 0 {
		return
	}
	e.runs.come()
	go func() {
		defer e.runs.leave()
		defer v.surviveClient()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), outage.AskTimeout)
		defer cancel()
		e.line.pass(ctx, v, next, max(w.free(v.hash), 1))
	}()
}

// surviveClient recovers from a panic of the user's Redis client or its hooks. It must neither end the process nor turn
// a run that has succeeded into a failure, which asynq would repeat.
func (v *visit) surviveClient() {
	if p := recover(); p != nil {
		v.warn("holdfast: asynqlock: the guard of a task has failed", "line", "operation", "line", "panic", p)
	}
}
