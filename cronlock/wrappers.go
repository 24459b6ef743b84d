package cronlock

import (
	"cmp"
	"context"
	"errors"
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
	return guard.Must(NewExclusive(strategy, name, opts...))
}

// NewExclusive is [Exclusive] for settings that are known only at run time: it returns an error instead of panicking.
func NewExclusive(strategy core.Strategy, name string, opts ...Option) (cron.JobWrapper, error) {
	config, err := newConfig(exclusivePlace, opts)
	if err = cmp.Or(err, checkName(name)); err != nil {
		return nil, err
	}
	exclusive, ask, err := config.exclusive(strategy, name)
	if err != nil {
		return nil, err
	}
	return wrapper(name, config, seal.FactsOf(exclusive.Of(ask)), ask, exclusive.Do), nil
}

// exclusive returns the guard of a wrapper, and what its jobs ask.
func (c *config) exclusive(strategy core.Strategy, name string) (*guard.Exclusive, guard.Ask, error) {
	g := c.guarded()
	g.Lock, g.AskTimeout = c.lockOptions(), guard.AskTimeout
	guarded, err := guard.NewExclusive("cron", strategy, g)
	ask := guard.Ask{Name: "cron:" + name}
	ask.KeyHash = guard.Hash(nil, ask.Name)
	return guarded, ask, err
}

// Leader returns a wrapper for [cron.NewChain] that runs jobs only on the replica whose election leads. Other replicas
// skip silently: the NotRun of [core.Hooks] has the reason [NotLeader]. It suits one job, and the chain of a whole
// cron. A replica leads while [core.Election.Run] or Campaign of this very Election does, so each replica needs one
// goroutine that campaigns.
//
// A job with a method RunContext(context.Context) error, such as a [JobFunc], gets a context that ends with leadership. It
// carries the term as its fencing token, [core.TokenFrom]. Put Leader last in the chain: robfig's wrappers hide that
// method from those before them. Run waits until the job has returned before it gives up leadership.
//
// Leader does not make a tick run once. If the leader changes between the ticks of two clocks that differ, both leaders
// run the tick, one after the other. Ticks without a leader run nowhere. Use [AddFunc] with [WithLeader] against the first.
//
// It takes the options WithContext, WithService and WithTimeout. Hooks get the name of the election as the label. It
// panics if an argument is invalid: [NewLeader] returns an error instead.
func Leader(e *core.Election, opts ...Option) cron.JobWrapper {
	return guard.Must(NewLeader(e, opts...))
}

// NewLeader is [Leader] for settings that are known only at run time: it returns an error instead of panicking.
func NewLeader(e *core.Election, opts ...Option) (cron.JobWrapper, error) {
	config, err := newConfig(leaderPlace, opts)
	if err = cmp.Or(err, config.follow(e)); err != nil {
		return nil, err
	}
	facts := seal.FactsOf(e)
	return wrapper(facts.Election, config, facts, guard.Ask{}, guard.NewRunner("cron", facts).Do), nil
}

// wrapper returns a wrapper whose jobs a guard runs.
func wrapper(
	name string, config config, facts seal.Facts, ask guard.Ask,
	do func(context.Context, guard.Ask, guard.Run) (*guard.Outcome, error),
) cron.JobWrapper {
	return func(inner cron.Job) cron.Job {
		j := newJob(name, funcOf(inner), config, facts)
		return cron.FuncJob(func() { _ = j.bare(config.context, ask, do) })
	}
}

// bare runs the job of a wrapper, or not. The error is why not.
func (j *job) bare(
	ctx context.Context, ask guard.Ask, do func(context.Context, guard.Ask, guard.Run) (*guard.Outcome, error),
) error {
	e := j.newExecution(ctx, tick{time: time.Now()})
	ask.Label, ask.Due = j.name, e.tick.time
	_, err := do(ctx, ask, e.handle(func(ctx context.Context, o *guard.Outcome, next func(context.Context)) error {
		run := e.newRun(e.tick.time)
		run.Token = o.Token
		return e.begin(ctx, o, run, next)
	}))
	return err
}

// WithLeader runs the ticks of a job only on the replica whose election leads, and there at most once, even if the leader
// changes. Other replicas skip silently, for the reason [NotLeader]. The context of a run ends with leadership too, with
// [core.ErrLeaseLost] as its cause if leadership was lost. Its fencing token, and the token of [Run], is the term.
//
// A replica leads while [core.Election.Run] or Campaign of this very Election does. A tick without a leader is lost.
// [JobHandle.Run] returns [core.ErrNotLeader] elsewhere. Not with [WithFailover] and [WithCatchUp], which let other
// replicas run a tick later. Defaults to none: any replica may run a tick.
func WithLeader(e *core.Election) Option {
	return newOption("WithLeader", func(c *config) error { return c.follow(e) })
}

// follow makes the job one of the leader of an election.
func (c *config) follow(e *core.Election) error {
	if c.leader = e; e == nil {
		return invalid("WithLeader: the election is nil")
	}
	if err := e.IsLeader(context.Background()); !errors.Is(err, core.ErrNotLeader) {
		return err
	}
	return nil
}

// JobFunc returns a [cron.Job] of a function whose context ends with what a wrapper of this package holds: the lock of [Exclusive],
// the leadership of [Leader]. Without such a wrapper, or before another one in the chain, the context never ends and the error is
// dropped.
func JobFunc(fn func(context.Context) error) cron.Job { return jobFunc(fn) }

type jobFunc func(context.Context) error

func (f jobFunc) Run() { _ = f(context.Background()) }

func (f jobFunc) RunContext(ctx context.Context) error { return f(ctx) }
