package cronlock

import (
	"context"
	"errors"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// Leader returns a wrapper for [cron.NewChain] that runs jobs only on the replica whose election leads. Other replicas
// skip silently: the NotRun of [core.Hooks] has the reason [NotLeader]. It suits one job, and the chain of a whole cron. A replica leads
// while [core.Election.Run] or Campaign of this very Election does, so each replica needs one goroutine that campaigns.
//
// A job with a method RunContext(context.Context) error, such as a [JobFunc], gets a context that ends with the lead. It
// carries the term as its fencing token, [core.TokenFrom]. Put Leader last in the chain: robfig's wrappers hide that
// method from those before them. Run waits until the job has returned before it gives up the lead.
//
// Leader does not make a tick run once. If the leader changes between the ticks of two clocks that differ, both leaders
// run the tick, one after the other. Ticks without a leader run nowhere. Use [AddFunc] with [WithLeader] against the first.
//
// It takes the options WithContext, WithService and WithTimeout. Hooks get the name of the election as the label. It
// panics if an argument is invalid: [NewLeader] returns an error instead.
func Leader(e *core.Election, opts ...Option) cron.JobWrapper {
	wrapper, err := NewLeader(e, opts...)
	if err != nil {
		panic(err)
	}
	return wrapper
}

// NewLeader is [Leader] for settings that are known only at run time: it returns an error instead of panicking.
func NewLeader(e *core.Election, opts ...Option) (cron.JobWrapper, error) {
	config := newConfig(leaderPlace, opts)
	config.follow(e)
	if config.err != nil {
		return nil, config.err
	}
	return func(inner cron.Job) cron.Job {
		facts := seal.FactsOf(e)
		j := newJob(facts.Name, funcOf(inner), config, facts)
		runner := guard.NewRunner("cron", facts)
		return cron.FuncJob(func() {
			e := j.newExecution(j.config.context, tick{time: time.Now()})
			_, _ = runner.Do(e.base, guard.Ask{Work: j.work(e.tick.time)}, e.handle(e.bare))
		})
	}, nil
}

// WithLeader runs the ticks of a job only on the replica whose election leads, and there at most once, even if the leader
// changes. Other replicas skip silently, for the reason [NotLeader]. The context of a run ends with the lead too, with
// [core.ErrLeaseLost] as its cause if the lead was lost. Its fencing token, and that of [Run], is the term.
//
// A replica leads while [core.Election.Run] or Campaign of this very Election does. A tick without a leader is lost.
// [JobHandle.Run] returns [core.ErrNotLeader] elsewhere. Not with [WithFailover] and [WithCatchUp], which let other
// replicas run a tick later. Defaults to none: any replica may run a tick.
func WithLeader(e *core.Election) Option {
	return newOption("WithLeader", func(c *config) { c.follow(e) })
}

// follow makes the job one of the leader of an election.
func (c *config) follow(e *core.Election) {
	if e == nil {
		c.refuse("WithLeader: the election is nil")
		return
	}
	if err := e.IsLeader(context.Background()); err != nil && !errors.Is(err, core.ErrNotLeader) && c.err == nil {
		c.err = err
	}
	c.leader = e
}

// JobFunc returns a [cron.Job] of a function whose context ends with what a wrapper of this package holds: the lock of [Exclusive],
// the lead of [Leader]. Without such a wrapper, or before another one in the chain, the context never ends and the error is
// dropped.
func JobFunc(fn func(context.Context) error) cron.Job { return jobFunc(fn) }

type jobFunc func(context.Context) error

func (f jobFunc) Run() { _ = f(context.Background()) }

func (f jobFunc) RunContext(ctx context.Context) error { return f(ctx) }

// leads returns why this replica may not run ticks of the job; nil if it may.
func (j *job) leads() error {
	if j.config.leader == nil {
		return nil
	}
	return j.config.leader.IsLeader(j.config.context)
}
