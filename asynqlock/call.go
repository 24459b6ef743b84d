package asynqlock

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/hibiken/asynq"
)

// called tells what became of a call.
type called int

const (
	calledNow       called = iota // the task is due now, or was made due a moment ago
	calledElsewhere               // it is due for longer, as in a paused queue, or with a worker, which may be dead
	calledNobody                  // it stands in line no more: it has run, has failed, or was archived or deleted
	calledTooSoon                 // asynq has not deferred it yet
)

const (
	// mostCalled bounds how many places of a line one pass looks at, beyond those of the tasks that run.
	mostCalled = 100
	// earlyPause is how long asynq may take to defer a task that a guard has sent back, and earlyTries how often that is
	// waited for.
	earlyPause, earlyTries = 100 * time.Millisecond, 4
)

// pass makes the next tasks of a visit's key due, as many as there is room for. Tasks that are due already but do not
// come, because their queue is paused or their worker is dead, take no room from those behind them. Nor do those that
// run. next are the first ones in the line. It returns the tasks that are due.
func (l *line) pass(ctx context.Context, v *visit, next []string, room int) (due []string) {
	hash, most := v.hash, mostCalled+min(v.limit, mostListed)
	for range earlyTries {
		early := false
		for from := 0; room > 0 && len(next) > 0 && from < most; {
			var gone []string
			for _, m := range next {
				if room == 0 {
					return due
				}
				if _, runs := l.running.Load(m); runs || l.places.has(hash, m) {
					continue
				}
				switch l.call(m) {
				case calledNow:
					due = append(due, m)
					room--
				case calledNobody:
					gone = append(gone, m)
				case calledTooSoon:
					early = true
				}
			}
			from += len(next) - len(gone)
			var err error
			if next, err = l.leave(ctx, hash, from, len(next), gone...); err != nil {
				return due
			}
		}
		if !early || room == 0 || !sleep(ctx, earlyPause) {
			return due
		}
		var err error
		if next, err = l.leave(ctx, hash, 0, min(v.limit, mostListed)+room); err != nil {
			return due
		}
	}
	return due
}

// call makes a task due. Only a task that a guard has deferred is touched: one that has failed waits for its own retry,
// and what is in the archive stays there.
func (l *line) call(m string) called {
	switch {
	case l.called.has(m):
		return calledNow
	case l.elsewhere.has(m):
		return calledElsewhere
	}
	queue, id := split(m)
	info, err := l.inspector.GetTaskInfo(queue, id)
	switch {
	case errors.Is(err, asynq.ErrTaskNotFound), errors.Is(err, asynq.ErrQueueNotFound):
		return calledNobody
	case err != nil: // it comes when its delay is over
	case info.State == asynq.TaskStateActive && l.bounced.has(m):
		return calledTooSoon
	case info.State == asynq.TaskStateRetry && strings.Contains(info.LastErr, deferredText):
		if l.inspector.RunTask(queue, id) == nil {
			l.called.add(m)
			return calledNow
		}
	case info.State != asynq.TaskStateActive && info.State != asynq.TaskStatePending:
		return calledNobody
	}
	l.elsewhere.add(m)
	return calledElsewhere
}

// back notes that a task goes back into the line, where it may be called again.
func (l *line) back(m string) {
	l.bounced.add(m)
	l.called.remove(m)
	l.elsewhere.remove(m)
}
