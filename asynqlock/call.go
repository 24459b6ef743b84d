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
	calledNow     called = iota // the task is due now
	calledBefore                // it was due already, or is with a worker
	calledNobody                // it stands in line no more: it has run, has failed, or was archived or deleted
	calledTooSoon               // asynq has not deferred it yet
)

// pass makes the next tasks of a key due after one has left the line: no more than may wait in workers, one at least.
func (l *line) pass(ctx context.Context, hash string, next []string, w *workers) {
	const pause, tries = 100 * time.Millisecond, 4
	width, room := len(next), max(w.free(hash), 1)
	for range tries {
		var gone, soon []string
		for _, m := range next {
			if room == 0 || l.places.has(hash, m) {
				continue
			}
			switch l.call(m) {
			case calledNow:
				room--
			case calledNobody:
				gone = append(gone, m)
			case calledTooSoon:
				soon = append(soon, m)
			}
		}
		if next = soon; len(gone) > 0 {
			more, err := l.leave(ctx, hash, width, gone...)
			if err != nil {
				return
			}
			next = more
		}
		if len(next) == 0 || len(gone) == 0 && !sleep(ctx, pause) {
			return
		}
	}
}

// call makes a task due. Only a task that a guard has deferred is touched: one that has failed waits for its own retry.
// Of the archive, only a task is taken that asynq has archived because it was deferred on its last attempt.
func (l *line) call(m string) called {
	if l.called.has(m) {
		return calledBefore
	}
	queue, id := split(m)
	info, err := l.inspector.GetTaskInfo(queue, id)
	if errors.Is(err, asynq.ErrTaskNotFound) || errors.Is(err, asynq.ErrQueueNotFound) {
		return calledNobody
	}
	if err != nil {
		return calledBefore // it comes when its delay is over
	}
	switch info.State {
	case asynq.TaskStatePending:
	case asynq.TaskStateActive:
		if l.bounced.has(m) {
			return calledTooSoon
		}
	case asynq.TaskStateRetry, asynq.TaskStateArchived:
		last := info.Retried >= info.MaxRetry
		if !strings.Contains(info.LastErr, deferredText) || info.State == asynq.TaskStateArchived && !last {
			return calledNobody
		}
		if l.inspector.RunTask(queue, id) == nil {
			l.called.add(m)
			return calledNow
		}
	default:
		return calledNobody
	}
	l.called.add(m)
	return calledBefore
}

// back notes that a task goes back into the line, where it may be called again.
func (l *line) back(m string) {
	l.bounced.add(m)
	l.called.remove(m)
}
