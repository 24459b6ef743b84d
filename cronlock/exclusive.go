package cronlock

import (
	"cmp"
	"context"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/guard"
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
	guarded, err := config.exclusive(strategy)
	if err != nil {
		return nil, err
	}
	facts := seal.FactsOf(guarded.Of(guard.Ask{Name: "cron:" + name}))
	return func(inner cron.Job) cron.Job {
		j := newJob(name, funcOf(inner), config, facts)
		return cron.FuncJob(func() { _ = j.exclusive(config.context, guarded) })
	}, nil
}

// exclusive returns the guard of a wrapper.
func (c *config) exclusive(strategy core.Strategy) (*guard.Exclusive, error) {
	g := c.guarded()
	g.Lock, g.AskTimeout = c.lockOptions(), guard.AskTimeout
	return guard.NewExclusive("cron", strategy, g)
}

// exclusive runs the job under its lock, or not. The error is why not.
func (j *job) exclusive(base context.Context, guarded *guard.Exclusive) error {
	e := j.newExecution(base, tick{time: time.Now()})
	ask := guard.Ask{Work: j.work(e.tick.time), Name: "cron:" + j.name}
	ask.KeyHash = hashOf(ask.Name)
	_, err := guarded.Do(base, ask, e.handle(e.bare))
	return err
}

// bare runs a job that a wrapper of this package guards.
func (e *execution) bare(ctx context.Context, o *guard.Outcome, next func(context.Context)) error {
	run := e.newRun(e.tick.time)
	run.Token = o.Token
	return e.begin(ctx, o, run, next)
}
