package cronlock

import (
	"context"
	"errors"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
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
		j := newJob(seal.FactsOf(e).Name, funcOf(inner), config, seal.FactsOf(e))
		return cron.FuncJob(j.runAsLeader)
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

// runAsLeader runs a job that [Leader] has wrapped, or not.
func (j *job) runAsLeader() {
	t := newTick(time.Now(), 0)
	if err := context.Cause(j.config.context); err != nil {
		j.skip(t, Stopped, err)
		return
	}
	run := j.newRun(t.time)
	began, err := j.lead(j.config.context, &run, func(ctx context.Context) error {
		ctx, end := j.limit(ctx, func() {})
		defer end()
		return j.call(ctx, t, run, unrecorded)
	})
	if !began {
		j.skip(t, notLeading(err), err)
	}
}

// lead calls fn as the leader that the job needs, with the term in run, or at once if the job needs none. It returns false
// if fn was not called.
func (j *job) lead(ctx context.Context, run *Run, fn func(context.Context) error) (began bool, err error) {
	if j.config.leader == nil {
		return true, fn(ctx)
	}
	err = j.config.leader.TryDo(ctx, func(ctx context.Context) error {
		began = true
		run.Token, _ = core.TokenFrom(ctx)
		return fn(ctx)
	})
	return began, err
}

// leads returns why this replica may not run ticks of the job; nil if it may.
func (j *job) leads() error {
	if j.config.leader == nil {
		return nil
	}
	return j.config.leader.IsLeader(j.config.context)
}

// notLeading is the reason for an error of an election.
func notLeading(err error) string {
	if errors.Is(err, core.ErrNotLeader) {
		return NotLeader
	}
	return Refused
}
