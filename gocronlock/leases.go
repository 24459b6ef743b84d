package gocronlock

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/holdfast-go/holdfast/core"
)

// leases are the leases of the runs in progress. gocron passes one context to Lock and to the function of a job, the same in
// all runs of the job, and nothing that names the run. So the leases of a job are a pool: its runs take any of them.
type leases struct {
	mu   sync.Mutex
	jobs map[<-chan struct{}][]*lock // by the Done channel of the job's context; guarded by mu
}

// lock is the [gocron.Lock] of a run.
type lock struct {
	locker *JobLocker
	job    string
	key    <-chan struct{}

	lease *core.Lease // guarded by leases.mu
	taken bool        // a function of Func runs with the lease; guarded by leases.mu
}

func (l *leases) add(k *lock) *lock {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.jobs == nil {
		l.jobs = make(map[<-chan struct{}][]*lock)
	}
	l.jobs[k.key] = append(l.jobs[k.key], k)
	return k
}

// enter returns a lease of the job with that context, which is reserved until leave is called, and the name of the job. It
// prefers a lease that is valid. It returns nil if the job has none.
func (l *leases) enter(ctx context.Context) (lease *core.Lease, job string, leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found *lock
	for _, k := range l.jobs[ctx.Done()] {
		if !k.taken && (found == nil || found.lease.Context().Err() != nil) {
			found = k
		}
	}
	if found == nil {
		return nil, "", nil
	}
	found.taken = true
	lease = found.lease
	return lease, found.job, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.free(ctx.Done(), lease)
	}
}

// free marks the lock that has a lease now. It may not be the lock of enter, because remove may have exchanged its lease.
func (l *leases) free(key <-chan struct{}, lease *core.Lease) {
	for _, k := range l.jobs[key] {
		if k.lease == lease {
			k.taken = false
		}
	}
}

// remove takes the lock of a run out, and returns the lease to give up. If another run of the job works with the lease of
// this lock, that run keeps it, and gets the lock's place. One is left over, because this run no longer needs any.
func (l *leases) remove(k *lock) *core.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	locks := l.jobs[k.key]
	if k.taken {
		if at := slices.IndexFunc(locks, func(other *lock) bool { return !other.taken }); at >= 0 {
			other := locks[at]
			k.lease, other.lease = other.lease, k.lease
			k.taken, other.taken = false, true
		}
	}
	if locks = slices.DeleteFunc(locks, func(other *lock) bool { return other == k }); len(locks) > 0 {
		l.jobs[k.key] = locks
	} else {
		delete(l.jobs, k.key)
	}
	return k.lease
}

// Unlock implements gocron.Lock. gocron drops the error, so it is logged.
func (k *lock) Unlock(ctx context.Context) error {
	err := k.locker.leases.remove(k).Unlock(ctx)
	switch {
	case errors.Is(err, core.ErrNotHeld):
		k.locker.reporter.incident(ctx, k.job, core.IncidentLost, err)
	case err != nil:
		k.locker.reporter.incident(ctx, k.job, core.IncidentUnrecorded, err)
	}
	return err
}
