package asynqlock

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// Hooks are called with what guards do. Each may be nil. They run on the task's goroutine, except Zombie, so they must
// be fast. Later versions may add fields to the structs. The [core.Hooks] of the client report what locks and records
// do.
type Hooks struct {
	// Acquired is called before a task runs.
	Acquired func(ctx context.Context, a Acquired)
	// Replayed is called when a task is acknowledged because an earlier run had completed.
	Replayed func(ctx context.Context, r Replayed)
	// Skipped is called when a task is acknowledged because another one with its key runs, see [SkipDuplicates].
	Skipped func(ctx context.Context, s Skipped)
	// Deferred is called when a task is deferred, to be redelivered later.
	Deferred func(ctx context.Context, d Deferred)
	// Refused is called when a task is archived: no key, another payload, an unknown outcome.
	Refused func(ctx context.Context, r Refused)
	// Finished is called after a task has run.
	Finished func(ctx context.Context, f Finished)
	// Failed is called when Redis did not do what a guard asked for, although the task runs or has run: the task began
	// without Redis ([FailOpen]), lost its lease, its end is not recorded, or it was not added to or removed from its
	// line.
	Failed func(ctx context.Context, f Failure)
	// Zombie is called when a handler continues for longer than [WithZombieGrace] after asynq has given up its task:
	// its lease is no longer renewed.
	Zombie func(ctx context.Context, z Zombie)
}

// Acquired is a task that may run.
type Acquired struct {
	Task    Task
	KeyHash string
	// Token is the fencing token.
	Token int64
	// Attempt for its key, from 1; 0 for [Exclusive].
	Attempt int
	// Waited is the time since the task arrived.
	Waited time.Duration
}

// Replayed is a task that had completed before.
type Replayed struct {
	Task    Task
	KeyHash string
	// Attempt is the number of the attempt that completed.
	Attempt int
}

// Skipped is a task that was not run.
type Skipped struct {
	Task    Task
	KeyHash string
	// Err is why.
	Err error
}

// Deferred is a task that asynq has to redeliver.
type Deferred struct {
	Task    Task
	KeyHash string
	RetryIn time.Duration
	// Busy is how long this server has been deferring the task because others with its key ran; Times is how often.
	Busy  time.Duration
	Times int
	// Ahead is the number of tasks before it in the line, including the running one, see [WithLine].
	Ahead int
	// Err is the reason; it is [ErrBusyTooLong] too each time that [WithMaxBusy] has passed.
	Err error
}

// Refused is a task that is archived.
type Refused struct {
	Task    Task
	KeyHash string // "" without key
	Err     error
}

// Finished is a task that has run.
type Finished struct {
	Task    Task
	KeyHash string
	// Attempt for its key, from 1; 0 for [Exclusive] and without record.
	Attempt int
	// State is what was to be recorded; [core.StateNone] if nothing, and for [Exclusive].
	State core.State
	// Held is the duration of the handler.
	Held time.Duration
	// Err is what the guard returns to asynq, or the error of the handler.
	Err error
}

// Failure is a command that Redis did not run or confirm.
type Failure struct {
	Task    Task
	KeyHash string
	// Operation is "begin", "run" for a lost lease, "finish", or "line" for the one of [WithLine].
	Operation string
	Err       error
}

// Zombie is a handler that continues after asynq has given up its task.
type Zombie struct {
	Task    Task
	KeyHash string
	// Since is when asynq gave up the task.
	Since time.Time
}
