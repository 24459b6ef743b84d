package asynqlock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	guards "github.com/holdfast-go/holdfast/internal/guard"
)

// Runs are the handlers that run behind guards in this process, see [WithRuns]. The zero value is ready to use.
//
// asynq's Shutdown does not wait for handlers that take longer than its ShutdownTimeout: it gives their tasks to other
// workers and returns. So before the process ends, and before the client of the locks is closed:
//
//	server.Shutdown()
//	err := runs.Drain(ctx)
type Runs struct {
	mu     sync.Mutex
	runs   map[*visit]struct{}
	visits int           // of tasks to guards, before they run too, and without record or key
	empty  chan struct{} // closed when there are none; nil while nobody waits
}

// Running is one handler that runs.
type Running struct {
	ID, Queue, Type string
	KeyHash         string
	// Since is when it began.
	Since time.Time
	// Zombie is true if asynq has given up the task.
	Zombie bool
}

// ErrStillRunning says that handlers are still running.
var ErrStillRunning = errors.New("holdfast: asynqlock: handlers are still running")

// List returns the running handlers, the oldest first.
func (r *Runs) List() []Running {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]Running, 0, len(r.runs))
	for run := range r.runs {
		list = append(list, Running{
			ID: run.task.ID, Queue: run.task.Queue, Type: run.task.Type, KeyHash: run.ask.KeyHash, Since: run.began, Zombie: run.ctx.Err() != nil,
		})
	}
	slices.SortFunc(list, func(a, b Running) int { return a.Since.Compare(b.Since) })
	return list
}

// Drain waits until no task is in a guard, or until ctx ends. No task is in a guard once all handlers have returned
// and their ends are recorded. If ctx ends first, Drain returns [ErrStillRunning] and stops renewing the leases of the
// running handlers. It frees no key: no other task gets a key of a running handler before the TTL expires, even if the
// process ends at once.
func (r *Runs) Drain(ctx context.Context) error {
	for {
		empty := r.waiting()
		if empty == nil {
			return nil
		}
		select {
		case <-empty:
		case <-ctx.Done():
			return r.abandon(ctx)
		}
	}
}

// waiting returns what is closed when there are no runs, nil if there are none.
func (r *Runs) waiting() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.visits == 0 {
		return nil
	}
	if r.empty == nil {
		r.empty = make(chan struct{})
	}
	return r.empty
}

func (r *Runs) abandon(ctx context.Context) error {
	r.mu.Lock()
	runs, visits := slices.Collect(maps.Keys(r.runs)), r.visits
	r.mu.Unlock()
	if visits == 0 {
		return nil
	}
	for _, run := range runs {
		guards.Abandon(run.inside) // which calls hooks, that may want to see the list
	}
	return fmt.Errorf("%w: %d: %w", ErrStillRunning, visits, context.Cause(ctx))
}

// come counts a task that has come to a guard, which owes a leave.
func (r *Runs) come() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.visits++
}

func (r *Runs) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.visits--; r.visits == 0 && r.empty != nil {
		close(r.empty)
		r.empty = nil
	}
}

func (r *Runs) add(v *visit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.runs == nil {
		r.runs = make(map[*visit]struct{})
	}
	r.runs[v] = struct{}{}
}

func (r *Runs) remove(v *visit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.runs, v)
}
