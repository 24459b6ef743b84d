package asynqlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/core"
)

// disposition is what a handler has said of its run.
type disposition int32

const (
	undecided disposition = iota
	completed
	released
	held
)

// ErrNotGuarded says that a handler has called [Complete], [Release], [Hold] or [SetResult], but is not behind [Once].
var ErrNotGuarded = errors.New("holdfast: asynqlock: not a task behind Once")

// Complete says that the task has taken effect and must not run again, whatever the handler returns, and whether or
// not it returns. Call it right after the side effect. The guard writes it at once, so that even a crash of the
// process does not undo it. An error means that Redis did not confirm that; Complete counts all the same when the
// handler ends, and the task is acknowledged. Of several calls of Complete, [Release] and [Hold] the last counts. ctx
// is that of the handler, or descends from it.
func Complete(ctx context.Context) error { return declare(ctx, completed, core.StateCompleted) }

// Release says that nothing has happened, and that the task may run again, even with [AtMostOnce]. AtMostOnce
// nevertheless holds the task if the process crashes before the handler returns. See [Complete].
func Release(ctx context.Context) error { return declare(ctx, released, core.StateNone) }

// Hold says that it is unknown whether the task has taken effect. The task is archived, and must not run again until
// an operator has found out. See [Complete].
func Hold(ctx context.Context) error { return declare(ctx, held, core.StateUnknown) }

func declare(ctx context.Context, said disposition, state core.State) error {
	r := recorded(ctx)
	if r == nil {
		return ErrNotGuarded
	}
	r.word.Store(int32(said))
	if r.attempt == nil {
		return fmt.Errorf("%w: the task runs without a record", core.ErrUnavailable)
	}
	return r.attempt.Declare(ctx, state)
}

// Attempt returns the number of the attempt for the key of the task of ctx, from 1. It is 0 if the task is not behind
// [Once], or runs without record. asynq's own count of retries is for one task; this one is for all tasks with the
// key. The fencing token is in the context too: see [core.TokenFrom].
func Attempt(ctx context.Context) int {
	if r := recorded(ctx); r != nil && r.attempt != nil {
		return r.attempt.Number()
	}
	return 0
}

// KeyHash returns the hash of the key of the task of ctx, "" if it is not guarded. It is the same for every attempt,
// so you can give it to another service as Idempotency-Key.
func KeyHash(ctx context.Context) string {
	r := recorded(ctx)
	if r == nil {
		r = runFrom(ctx)
	}
	if r == nil {
		return ""
	}
	return r.hash
}

// Degraded returns true if ctx is that of a task which runs without Redis, see [FailOpen]. There is no fencing token
// then.
func Degraded(ctx context.Context) bool {
	for r := runFrom(ctx); r != nil; r = r.around {
		if r.lease == nil {
			return true
		}
	}
	return false
}
