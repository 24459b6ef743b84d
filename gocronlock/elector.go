package gocronlock

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/go-co-op/gocron/v2"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// LeaderElector is the [gocron.Elector] of an election: see [Elector].
type LeaderElector struct {
	reporter reporter
	election *core.Election
	warned   atomic.Bool // or Lead was called
}

var _ gocron.Elector = (*LeaderElector)(nil)

// Elector returns an elector for [gocron.WithDistributedElector]: only the replica that leads the election starts jobs. Each
// replica calls [LeaderElector.Lead] in a goroutine of its own. Elector does no I/O.
//
// gocron asks before each run. It asks no locker beside an elector. Leadership may end during a run: give jobs that take long to
// [LeaderElector.Func]. A tick at which no replica leads is lost; after a crash, that takes the TTL of the election. If the
// leader changes between the ticks of two clocks that differ, both leaders run the tick, one after the other.
//
// Elector panics if the election is nil, or has an invalid name or option: [NewElector] returns an error instead.
func Elector(e *core.Election) *LeaderElector {
	elector, err := NewElector(e)
	if err != nil {
		panic(err)
	}
	return elector
}

// NewElector is [Elector] for settings that are known only at run time: it returns an error instead of panicking.
func NewElector(e *core.Election) (*LeaderElector, error) {
	if e == nil {
		return nil, errors.New("holdfast: gocronlock: the election is nil: pass one of Client.Election")
	}
	if err := e.IsLeader(context.Background()); err != nil && !errors.Is(err, core.ErrNotLeader) {
		return nil, err
	}
	return &LeaderElector{reporter: newReporter(seal.FactsOf(e)), election: e}, nil
}

// Lead campaigns, and leads whenever it has won, until ctx ends. It returns nil then, and other errors of
// [core.Election.Run] at once. When ctx ends or leadership is lost, the contexts of the jobs of Func end. Lead gives up
// leadership, or campaigns again, only after these jobs have returned. It cannot wait for jobs without Func: shut the scheduler
// down before ctx ends.
func (l *LeaderElector) Lead(ctx context.Context) error {
	l.warned.Store(true)
	err := l.election.Run(ctx, func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// IsLeader implements [gocron.Elector]. It returns nil while this replica leads, and [core.ErrNotLeader] otherwise. It does
// no I/O. Its first call warns if this replica does not lead and Lead was not called, since gocron would be silent.
func (l *LeaderElector) IsLeader(ctx context.Context) error {
	err := l.election.IsLeader(ctx)
	if err != nil && l.warned.CompareAndSwap(false, true) {
		l.reporter.Logger.Warn("holdfast: gocronlock: this replica runs no job: it does not lead, and has not called Lead")
	}
	return err
}

// Func returns a job that calls fn while this replica leads. The context of fn descends from gocron's, and so ends at a
// shutdown of the scheduler. It is also cancelled when leadership is lost, with [core.ErrLeaseLost] as its cause after
// a loss. It carries the term as the fencing token: see [core.TokenFrom]. [core.Hooks] get the run under the name of
// the election, since gocron does not tell a job its own.
//
// The job returns what fn returns. If leadership ended between the question of gocron and the call, the error is
// [core.ErrNotLeader], and fn is not called. If leadership was lost before fn returned, the error is also ErrLeaseLost. gocron
// passes errors of jobs to [gocron.AfterJobRunsWithError] only.
func (l *LeaderElector) Func(fn func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		name := seal.FactsOf(l.election).Election
		began, err := l.reporter.run(ctx, name, fn, l.election.TryDo)
		if began && errors.Is(err, core.ErrLeaseLost) {
			l.reporter.incident(ctx, name, core.IncidentLost, err)
		}
		return err
	}
}
