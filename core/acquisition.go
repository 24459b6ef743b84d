package core

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/core/internal/acquire"
	"github.com/holdfast-go/holdfast/core/internal/script"
)

// acquisition is one call of Lock, TryLock or Begin: it makes the lease of a grant, and the error of the API otherwise.
type acquisition struct {
	acquire.Acquisition
	engine *engine
	config lockConfig

	// parents has the lease under which each hold is a re-entry, nil if there is none. That of a hold which is none any more
	// does not count, see parentOf.
	parents []*holding
	parent  [1]*holding        // memory for parents
	reentry [1]acquire.Reentry // memory for Reentries

	lease *Lease       // nil before a grant was accepted
	grant script.Grant // of the lease
}

// newAcquisition prepares the acquisition of one lock. Its memory comes from a pool.
func (l *singleLock) newAcquisition(ctx context.Context, config lockConfig) *acquisition {
	e := l.engine
	a, _ := e.acquisitions.Get().(*acquisition)
	*a = acquisition{engine: e, config: config}
	a.Request = acquire.Request{
		Env: &e.acquiring, Strategy: l.strategy, Abilities: l.abilities, Caller: a, Wait: config.wait,
		Hold: config.hold(l.name, l.keys), RenewsGrants: !config.fixed && config.minHold == 0,
	}
	h := &a.Hold
	h.ScriptArgs = l.args
	e.ids.Renew(h)
	if h.Owner != "" {
		a.Reenters, a.NamedOwner = true, true
		return a
	}
	// Only a lease of this very lock is entered again. Under the lease of another lock each call is a new owner. So the
	// tasks of one batch, which share the batch's lease, exclude each other here.
	parent := holdingFrom(ctx).of(e, h.Keys.Lock)
	if parent == nil || config.fresh {
		h.Owner = h.ID
		return a
	}
	a.parent[0], a.parents = parent, a.parent[:]
	a.reentry[0], a.Reentries, a.Reenters = acquire.Reentry{Hold: h, Parent: parent}, a.reentry[:], true
	a.ForeignParent = h.Limit > 0 && !sameRedis(parent.lease.engine, e)
	h.Owner, h.ParentID = parent.lease.hold.Owner, parent.lease.hold.ID
	return a
}

// recycle returns the memory to the pool, if nothing else can refer to it.
func (a *acquisition) recycle() {
	if a.Reusable() {
		a.engine.acquisitions.Put(a)
	}
}

// run acquires the lock. Without a lease, it leaves no hold in Redis, and returns the error of the API.
func (a *acquisition) run(caller context.Context) (*Lease, error) {
	if err := a.Run(caller); err != nil {
		return nil, a.publicError(caller, err)
	}
	return a.lease, nil
}

// Accept implements acquire.Caller.
func (a *acquisition) Accept(ctx context.Context, h *script.Hold, g script.Grant) (err error) {
	a.lease, err = a.engine.newLease(ctx, a.Strategy, *h, g, &a.config, a.parentOf(0, h).entered(a.engine, g.Token))
	if err == nil {
		a.grant = g
	}
	return err
}

// parentOf returns the lease under which the n-th hold of the acquisition has entered; nil if there is none.
func (a *acquisition) parentOf(n int, h *script.Hold) *holding {
	if h.ParentID == "" {
		return nil
	}
	return a.parents[n]
}

// publicError returns the error of the API for the end of the acquisition.
func (a *acquisition) publicError(caller context.Context, err error) error {
	switch end := err.(type) {
	case *acquire.RefusedError:
		if end.Refused.Kind == script.Upgrade {
			return fmt.Errorf("%w: %q", ErrUpgrade, a.Hold.Name)
		}
		return onceError(a.Hold.Name, end.Refused)
	case *acquire.UnavailableError:
		return a.failed(unavailable(end.Last, nil))
	case *acquire.FailedError:
		return a.failed(failure(caller, a.Hold.Keys.Lock, end.Err))
	}
	switch err {
	case acquire.ErrTimeUp:
		return a.timeUpError(caller)
	case acquire.ErrWaiterLimit:
		return a.notAcquired(tooManyWaiters(a.engine.acquiring.Waits.Most))
	}
	return err
}

// timeUpError is the error of an acquisition whose time is up.
func (a *acquisition) timeUpError(caller context.Context) error {
	cause := ended(caller)
	switch {
	case cause == nil && a.engine.operations.IsClosed():
		return ErrClosed
	case a.LastErr != nil && !acquire.WaitEnded(a.LastErr):
		return a.failed(trouble(a.Hold.Keys.Lock, a.LastErr, cause))
	case a.LastErr != nil && a.LooksLikeOutage():
		cause = errors.Join(trouble(a.Hold.Keys.Lock, a.Outage, nil), cause)
	}
	return a.notAcquired(cause)
}

// failed is the error of an acquisition that another error has ended.
func (a *acquisition) failed(err error) error {
	what := "lock"
	if a.Hold.Terms != nil {
		what = "once"
	}
	return errorf("holdfast: %s %q: %w", what, a.Hold.Name, err)
}

// notAcquired is the error of an acquisition that another owner has kept from the lock, as far as is known.
func (a *acquisition) notAcquired(cause error) error {
	return &NotAcquiredError{
		Name: a.Hold.Name, RetryAfter: max(a.HolderTTL, 0), Holder: a.Holder, Instance: a.engine.directory.Instance(a.Holder), cause: cause,
	}
}

// ended returns why a caller's context is over, nil if it is not.
func ended(caller context.Context) error {
	err := caller.Err()
	if cause := context.Cause(caller); cause != err {
		return errors.Join(err, cause)
	}
	return err
}

// tooManyWaiters is the error of a call beyond the limit of [WithMaxWaiters].
func tooManyWaiters(limit int) error {
	return fmt.Errorf("%w: %d of this client do, see WithMaxWaiters", ErrTooManyWaiters, limit)
}
