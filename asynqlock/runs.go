package asynqlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	guards "github.com/holdfast-go/holdfast/internal/guard"
)

// Runs are the tasks that are behind guards in this process, see [WithRuns]. The zero value is ready to use.
//
// asynq's Shutdown does not wait for handlers that take longer than its ShutdownTimeout: it gives their tasks to other
// workers and returns. So before the process ends, and before the client of the locks is closed:
//
//	server.Shutdown()
//	err := runs.Drain(ctx)
type Runs struct {
	visits  atomic.Int64 // of tasks to guards, before they run too, and without record or key
	running sync.Map     // the visits whose handlers run
}

// ErrStillRunning says that handlers are still running.
var ErrStillRunning = errors.New("holdfast: asynqlock: handlers are still running")

// drainInterval lies between two looks of [Runs.Drain].
const drainInterval = 10 * time.Millisecond

// Drain waits until no task is in a guard, or until ctx ends. No task is in a guard once all handlers have returned
// and their ends are recorded. If ctx ends first, Drain stops renewing the leases of the running handlers, and returns an
// [ErrStillRunning] that names them. It frees no key: no other task gets a key of a running handler before the TTL expires, even
// if the process ends at once.
func (r *Runs) Drain(ctx context.Context) error {
	for r.visits.Load() > 0 {
		if !guards.Pause(ctx, drainInterval) {
			return r.abandon(context.Cause(ctx))
		}
	}
	return nil
}

func (r *Runs) abandon(cause error) error {
	var left []string
	r.running.Range(func(run, _ any) bool {
		v := run.(*visit)
		left = append(left, fmt.Sprintf("%s %s for %v", shown(v.task.Type), shown(identity(v.task)), time.Since(v.began).Round(time.Millisecond)))
		guards.Abandon(v.inside)
		return true
	})
	slices.Sort(left)
	return fmt.Errorf("%w: %s: %w", ErrStillRunning, strings.Join(left, ", "), cause)
}
