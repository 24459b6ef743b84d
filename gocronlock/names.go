package gocronlock

import (
	"context"
	"errors"
	"regexp"
	"sync"
)

// ErrUnnamed refuses a job that has the name of an anonymous function, as gocron names jobs without [gocron.WithName].
// Such names depend on where the function is in its source: two versions of a program give them to different jobs.
var ErrUnnamed = errors.New("holdfast: gocronlock: the job has no name of its own: use gocron.WithName")

// anonymous matches the names that the compiler gives to functions without one.
var anonymous = regexp.MustCompile(`\.func\d+(\.\d+)*(-range\d+)?$|\.gowrap\d+$`)

// names maps names to jobs of this process.
type names struct {
	mu     sync.Mutex
	jobs   map[string]context.Context // of the last job with that name; guarded by mu
	warned map[string]bool            // guarded by mu
}

// shared returns true, once for each name, if another job of this process has it too. ctx is the one that gocron makes for
// each job: it ends when the job is removed or the scheduler is stopped.
func (n *names) shared(ctx context.Context, name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.jobs == nil {
		n.jobs, n.warned = make(map[string]context.Context), make(map[string]bool)
	}
	other := n.jobs[name]
	n.jobs[name] = ctx
	if other == nil || other.Done() == ctx.Done() || other.Err() != nil || n.warned[name] {
		return false
	}
	n.warned[name] = true
	return true
}
