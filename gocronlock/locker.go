package gocronlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/foreign"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// DefaultMinHold is how long a job counts as running at least, after its start, unless [core.WithMinHold] says otherwise.
// It is longer than the clocks of hosts with NTP differ, and shorter than a period of one second.
const DefaultMinHold = 500 * time.Millisecond

// ErrNotLocked says that a job of [JobLocker.Func] was called without the lock: by a scheduler without the locker, or
// with another one, or beside an elector.
var ErrNotLocked = errors.New("holdfast: gocronlock: the job runs without the lock of this locker")

// JobLocker is a [gocron.Locker]: see [Locker].
type JobLocker struct {
	reporter reporter
	strategy core.Strategy
	options  []core.LockOption
	leases   leases
	names    names
}

var _ gocron.Locker = (*JobLocker)(nil)

// Locker returns a locker for [gocron.WithDistributedLocker] or [gocron.WithDistributedJobLocker]. A job runs while its
// scheduler holds the lock "gocron:" and the name of the job. The strategy makes the lock: locks.Mutex of a client, for
// instance. With locks.Limit(n), at most n replicas run a job at a time. Locker does no I/O.
//
// The package comment says what a Locker does not promise. For jobs that must not run twice, set [core.WithMinHold] to
// more than the clocks differ, and less than the period; for a [gocron.DurationJob] to nearly the period. As the periods
// of jobs differ, so may their lockers: [gocron.WithDistributedJobLocker].
//
// A job needs a name that is stable and its own: [gocron.WithName]. Names of anonymous functions are refused with
// [ErrUnnamed], because a change of the source moves them. Two jobs with one name exclude each other, which is logged once.
//
// The options apply to the lock; the minimum hold defaults to [DefaultMinHold]. [core.WithWait] and [core.WithOwner]
// have no effect: a run never waits, and never enters the lock of another one. The lease is renewed while the job runs.
//
// Locker panics if the strategy is nil or an option invalid: [NewLocker] returns an error instead.
func Locker(strategy core.Strategy, opts ...core.LockOption) *JobLocker {
	locker, err := NewLocker(strategy, opts...)
	if err != nil {
		panic(err)
	}
	return locker
}

// NewLocker is [Locker] for settings that are known only at run time: it returns an error instead of panicking.
func NewLocker(strategy core.Strategy, opts ...core.LockOption) (*JobLocker, error) {
	if strategy == nil {
		return nil, errors.New("holdfast: gocronlock: the strategy is nil: pass the method of a client, like locks.Mutex")
	}
	options := slices.Concat([]core.LockOption{core.WithMinHold(DefaultMinHold)}, opts)
	lock := strategy("gocron:check", options...)
	if err := lock.Check(); err != nil {
		return nil, err
	}
	return &JobLocker{reporter: newReporter(seal.FactsOf(lock)), strategy: strategy, options: options}, nil
}

// Lock implements [gocron.Locker]: it takes the lock of a job, or returns an error at once, for which gocron skips the run.
// gocron passes the error to [gocron.AfterLockError] only:
//
//   - [core.ErrNotAcquired] if another run has the lock. It is logged at the level debug, and any other error as a warning.
//   - [core.ErrUnavailable] if Redis did not reply for some seconds.
//   - [ErrUnnamed], and other errors of [core.Lock].
//
// The NotRun of [core.Hooks] gets each of them.
func (l *JobLocker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	came := time.Now()
	lease, err := l.tryLock(ctx, job)
	if err == nil {
		return l.leases.add(&lock{locker: l, job: job, key: ctx.Done(), lease: lease}), nil
	}
	why := reason(ctx, err)
	if why == stopped || why == overlapping {
		l.reporter.Logger.Debug("holdfast: gocronlock: run skipped", "job", foreign.Line(job, mostShown), "error", err)
	} else {
		l.reporter.Logger.Warn("holdfast: gocronlock: job does not run", "job", foreign.Line(job, mostShown), "error", err)
	}
	l.reporter.hooks.NotRun(ctx, core.NotRun{Work: work(job), Reason: why, Waited: time.Since(came), Err: err})
	return nil, err
}

func (l *JobLocker) tryLock(ctx context.Context, job string) (*core.Lease, error) {
	if anonymous.MatchString(job) {
		return nil, fmt.Errorf("%w: %s", ErrUnnamed, foreign.Quote(job, mostShown))
	}
	if l.names.shared(ctx, job) {
		l.reporter.Logger.Warn("holdfast: gocronlock: two jobs have one name and exclude each other: use gocron.WithName", "job", foreign.Line(job, mostShown))
	}
	// An owner of its own, whatever ctx carries: no run enters the lock of another one.
	locker := l.strategy("gocron:"+job, l.options...)
	newOwner, _ := seal.FactsOf(locker).NewOwner.(core.LockOption)
	return locker.TryLock(ctx, newOwner)
}

// Func returns a job that calls fn with the context of the lease that gocron has taken for the run. It ends with the lease,
// with [core.ErrLeaseLost] as its cause after a loss, and with the context of gocron, at a shutdown of the scheduler. It
// carries the fencing token: see [core.TokenFrom]. The RunStart and RunEnd of [core.Hooks] get the run.
//
// The job returns what fn returns. If the lease was lost before fn returned, the error is also ErrLeaseLost. Without a
// lease of this locker, the job returns [ErrNotLocked] and does not call fn. gocron passes errors of jobs to
// [gocron.AfterJobRunsWithError] only.
//
// All jobs of Func have the same function, so gocron cannot distinguish them by name: use [gocron.WithName].
func (l *JobLocker) Func(fn func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		lease, job, leave := l.leases.enter(ctx)
		if lease == nil {
			return ErrNotLocked
		}
		defer leave()
		_, err := l.reporter.run(ctx, job, fn, func(ctx context.Context, fn func(context.Context) error) error {
			bound, cancel := seal.FactsOf(lease).Lease.Bind(ctx)
			defer cancel()
			return fn(bound)
		})
		if lost := context.Cause(lease.Context()); lost != nil && !errors.Is(err, lost) {
			err = errors.Join(err, lost)
		}
		return err
	}
}
