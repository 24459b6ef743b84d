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

// ErrNotGuarded says that a handler has said something about its run, but is not behind [Once].
var ErrNotGuarded = errors.New("holdfast: asynqlock: not a task behind Once")

// Complete is a handler's own word: the task has taken effect and must not run again, whatever the handler returns, and
// whether or not it returns. Call it right after the side effect. It is written at once, so that even the end of the
// process does not undo it; the error, if any, says that Redis did not confirm that. The word counts all the same when
// the handler ends, and the task is acknowledged. The last word counts. ctx is that of the handler, or descends from
// it.
func Complete(ctx context.Context) error { return declare(ctx, completed, core.StateCompleted) }

// Release is a handler's own word: nothing has happened, and the task may run again, also with [AtMostOnce], which
// nevertheless holds it if the process ends before the handler does. See [Complete].
func Release(ctx context.Context) error { return declare(ctx, released, core.StateNone) }

// Hold is a handler's own word: it cannot be known whether the task will have taken effect, so that it must not run
// again until somebody has found out; it is archived. See [Complete].
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

// Attempt returns which attempt for its key the task of ctx is, from 1; 0 if it is not behind [Once], or runs without
// record. asynq's own count of retries tells of one task, this one of all with the key. The fencing token is in the
// context too: see [core.TokenFrom].
func Attempt(ctx context.Context) int {
	if r := recorded(ctx); r != nil && r.attempt != nil {
		return r.attempt.Number()
	}
	return 0
}

// KeyHash returns the hash of the key of the task of ctx, "" if it is not guarded. It is the same for every attempt, so
// it can be handed to another service as Idempotency-Key.
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

// Degraded reports whether ctx is that of a task which runs without Redis, see [FailOpen]: there is no fencing token
// then.
func Degraded(ctx context.Context) bool {
	for r := runFrom(ctx); r != nil; r = r.around {
		if r.lease == nil {
			return true
		}
	}
	return false
}
