package guard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// Exclusive prevents two work items of one name from running at the same time, or more than n of them if its locks are
// semaphores. Make it with [NewExclusive]. It is safe for concurrent use.
type Exclusive struct {
	engine
	strategy core.Strategy
}

// NewExclusive returns an Exclusive whose locks are made by strategy. The place is the one of [core.Work]. The error is about a
// nil strategy, or options that the strategy does not take.
func NewExclusive(place string, strategy core.Strategy, c Config) (*Exclusive, error) {
	if strategy == nil {
		return nil, fmt.Errorf("%w: the strategy is nil: pass the method of a client, like locks.Mutex", core.ErrInvalidOption)
	}
	lock := strategy(place+":check", c.Lock...)
	if err := lock.Check(); err != nil {
		return nil, err
	}
	return &Exclusive{newEngine(place, c, seal.FactsOf(lock)), strategy}, nil
}

// Of returns the lock of a work item.
func (e *Exclusive) Of(ask Ask) *core.Lock {
	return e.strategy(ask.Name, append(e.Lock[:len(e.Lock):len(e.Lock)], ask.Lock...)...)
}

// Known returns why a work item would not run in an outage although the guard fails open: what this process knows of its name,
// except the run of it that ctx is inside of. It is for [Ask.Turn].
func (e *Exclusive) Known(ctx context.Context, ask Ask, unavailable error) error {
	if e.within(ctx, ask.Name) {
		return nil
	}
	return e.memory.Known(question{Key: ask.Name, Lock: e.Of(ask)}, unavailable)
}

// Do calls run.Call under the lock of the work item. It returns the outcome after that, and otherwise why the item did not
// run: an error of core or of Turn, Around or Refuse. The outcome is nil if the item did not run, and has nothing but Returned
// if the guard let it pass.
func (e *Exclusive) Do(ctx context.Context, ask Ask, run Run) (*Outcome, error) {
	v := e.visit(ask, run)
	if ask.NoKey != nil {
		return v.keyless(ctx)
	}
	lock := e.Of(ask)
	v.question = question{Key: ask.Name, Lock: lock}
	v.within = e.engine.within(ctx, ask.Name)
	v.claim = func(ctx context.Context, wait time.Duration) (grant, error) {
		lease, err := acquire(ctx, lock, wait)
		if err != nil {
			return nil, err
		}
		return leaseGrant{lease, seal.FactsOf(lease).Lease}, nil
	}
	return v.do(ctx)
}

// leaseGrant is a lock that was granted to a run.
type leaseGrant struct {
	*core.Lease
	sealed seal.Lease
}

// Bind returns the context for the run.
func (g leaseGrant) Bind(ctx context.Context) (context.Context, context.CancelFunc) {
	return g.sealed.Bind(ctx)
}

// Number counts attempts, which a lock does not have.
func (leaseGrant) Number() int { return 0 }

// end unlocks.
func (g leaseGrant) end(ctx context.Context, _ *running, _ []byte) error {
	err := g.Unlock(ctx)
	if errors.Is(err, core.ErrNotHeld) {
		return fmt.Errorf("%w: %w", core.ErrLeaseLost, err)
	}
	return err
}
