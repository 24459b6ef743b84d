package asynqlock

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/outage"
)

// DeferredError says that asynq has to redeliver a task for a reason outside of the task: another one with its key
// runs, its lease was lost, or Redis cannot be asked. asynq calls that a failure and burns a retry, unless you use
// [Configure]. The wrapped error is the reason: [core.ErrInProgress] and [core.ErrNotAcquired], [core.ErrLeaseLost],
// [core.ErrUnavailable].
type DeferredError struct {
	// KeyHash is the hash of the task's key.
	KeyHash string
	// RetryIn is the delay before the redelivery.
	RetryIn time.Duration
	// Busy is how long this server has been deferring the task because others with its key ran; Times is how often.
	Busy  time.Duration
	Times int
	// Ahead is the number of tasks before it in the line, including the running one, see [WithLine].
	Ahead int
	// Err is the reason.
	Err error
}

// Error returns the reason and the delay.
func (e *DeferredError) Error() string {
	return fmt.Sprintf("%s for %v: %v", deferredText, e.RetryIn.Round(time.Millisecond), e.Err)
}

// deferredText tells a deferred task from one that has failed, in asynq's record of its last error.
const deferredText = "holdfast: asynqlock: task deferred"

// Unwrap returns the reason.
func (e *DeferredError) Unwrap() error { return e.Err }

// busy reports whether another task of the key is the reason, as it may be for a while.
func (e *DeferredError) busy() bool { return isBusy(e.Err) && !errors.Is(e.Err, ErrBusyTooLong) }

// isBusy reports whether somebody else has the key, as Redis itself said.
func isBusy(err error) bool {
	return outage.Busy(err) && !errors.Is(err, core.ErrLeaseLost)
}

// ErrBusyTooLong says that a task has been deferred for longer than [WithMaxBusy] because others with its key ran. The
// task is deferred further, and burns no retry: it has never run.
var ErrBusyTooLong = errors.New("holdfast: asynqlock: busy for too long")

// shortestDelay keeps a task from coming again while asynq still works at its last run: the queue counts in whole
// seconds, and its heartbeat takes two quick runs of a task for one.
const shortestDelay = time.Second

// jittered returns a time around d, so that those who were deferred together do not come together again.
func jittered(d time.Duration) time.Duration {
	return max(d/2+rand.N(d), shortestDelay)
}
