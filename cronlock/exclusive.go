package cronlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/outage"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// Exclusive returns a wrapper for [cron.NewChain] that prevents two runs of a job at the same time, on any replica. A
// run that finds another one in progress is skipped, or waits as [core.WithWait] says. The strategy makes the lock of that
// name, locks.Mutex for instance. With locks.Limit(n), at most n runs are in progress at a time, over all replicas. They may be
// on one replica, if the job takes longer than its period: [cron.SkipIfStillRunning] in front prevents that.
//
// Exclusive does not make a tick run once: if the job is shorter than the difference of two clocks, both replicas run
// it, one after the other. Use [AddFunc] for that. Put Exclusive on one job: in the chain of a whole cron, all jobs
// would exclude each other. A job with a method RunContext(context.Context) error gets the context of the lease.
//
// It takes options of locks, such as [core.WithTTL] and [core.WithMaxHold], and WithContext, WithService,
// WithTimeout, WithZombieGrace and FailOpen. It panics if an argument is invalid: [NewExclusive] returns an error instead.
func Exclusive(strategy core.Strategy, name string, opts ...Option) cron.JobWrapper {
	wrapper, err := NewExclusive(strategy, name, opts...)
	if err != nil {
		panic(err)
	}
	return wrapper
}

// NewExclusive is [Exclusive] for settings that are known only at run time: it returns an error instead of panicking.
func NewExclusive(strategy core.Strategy, name string, opts ...Option) (cron.JobWrapper, error) {
	config := newConfig(exclusivePlace, opts)
	switch {
	case strategy == nil:
		return nil, invalid("the strategy is nil: pass the method of a client, like locks.Mutex")
	case config.err != nil:
		return nil, config.err
	}
	if err := cmp.Or(config.checkGrace(), checkName(name)); err != nil {
		return nil, err
	}
	lock := strategy("cron:"+name, config.lockOptions()...)
	if err := lock.Check(); err != nil {
		return nil, err
	}
	return func(inner cron.Job) cron.Job {
		j := newJob(name, funcOf(inner), config, seal.FactsOf(lock))
		return cron.FuncJob(func() { j.exclusive(lock) })
	}, nil
}

// exclusive runs the job under the lock, or not.
func (j *job) exclusive(lock *core.Lock) {
	t := newTick(time.Now(), 0)
	run := j.newRun(t.time)
	wait := time.Duration(0)
	if j.config.overlap == overlapWait {
		wait = j.config.Wait
	}
	lease, end, err := j.takeUnlessRunning(lock, wait)
	if j.config.FailOpen && outage.Is(err) && j.config.context.Err() == nil {
		unavailable := err
		if end, err = j.memory.Enter(outage.Question{Key: j.name, Lock: lock}, unavailable); err == nil {
			defer end()
			j.warnOfUnguarded(j.config.context, t.time, unavailable)
			ctx, cancel := j.limit(j.config.context, func() {})
			defer cancel()
			_ = j.call(ctx, t, run, unrecorded)
			return
		}
	}
	switch {
	case err == nil:
		defer end()
		j.underLease(lease, t, run)
	case j.config.context.Err() != nil || errors.Is(err, core.ErrClosed):
		j.skip(t, Stopped, err)
	case errors.Is(err, core.ErrNotAcquired) && !errors.Is(err, core.ErrUnavailable):
		j.skip(t, Overlapping, fmt.Errorf("%w: %w", ErrOverlap, err))
	case !outage.Is(err):
		j.skip(t, Refused, err)
	default:
		j.skip(t, Unavailable, err)
	}
}

// takeUnlessRunning takes the lock, unless a run of this process goes on that began without it, see [FailOpen]. end must be
// called when the run has ended.
func (j *job) takeUnlessRunning(lock *core.Lock, wait time.Duration) (lease *core.Lease, end func(), err error) {
	ctx, end := j.config.context, func() {}
	if !j.config.FailOpen {
		lease, err = j.take(ctx, lock, wait)
		return lease, end, err
	}
	q, began := outage.Question{Key: j.name, Lock: lock}, time.Now()
	if err = j.memory.Await(ctx, q, wait); err != nil {
		return nil, end, err
	}
	if lease, err = j.take(ctx, lock, wait-time.Since(began)); err != nil {
		return nil, end, err
	}
	if end, err = j.memory.Granted(q); err != nil {
		_ = lease.Unlock(context.WithoutCancel(ctx)) // it frees itself otherwise
	}
	return lease, end, err
}

// take takes a lock, and waits for it that long. A busy lock never passes for an outage.
func (j *job) take(ctx context.Context, lock *core.Lock, wait time.Duration) (*core.Lease, error) {
	if wait < outage.ShortestWait {
		return lock.TryLock(ctx)
	}
	return outage.Patience{Wait: wait, Ask: outage.AskTimeout, FailOpen: j.config.FailOpen}.Lock(ctx, lock)
}

// underLease runs the job and frees the lock.
func (j *job) underLease(lease *core.Lease, t tick, run Run) {
	defer func() { _ = lease.Unlock(context.WithoutCancel(j.config.context)) }() // it frees itself otherwise
	run.Token = lease.Token()
	ctx, cancel := until(lease.Context(), j.config.context)
	defer cancel()
	ctx, end := j.limit(ctx, func() {
		lease.Abandon()
		j.warnOfOverrun(run)
	})
	defer end()
	_ = j.call(ctx, t, run, unrecorded)
}

// unrecorded records nothing of a run.
func unrecorded(Run) core.State { return core.StateNone }
