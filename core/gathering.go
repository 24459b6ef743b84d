package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// gathering is one call of Lock or TryLock of a Multi on its way to a lease.
type gathering struct {
	multi  *multi
	caller context.Context // its end is an error of the call
	try    bool            // ask for each once
	opts   []LockOption
	ends   time.Time // by WithWait; zero if it does not
}

// memberLost says that a lock which had been granted was lost before the others were.
type memberLost struct {
	name  string
	cause error
}

func (e *memberLost) Error() string { return fmt.Sprintf("holdfast: lock %q: %v", e.name, e.cause) }

// run gathers the members until there is a lease or a reason to stop. ctx, below, ends with the caller's context and
// with the time that WithWait gives; only what the caller is not told of heeds it, since the end of WithWait is not
// that of a context.
func (g *gathering) run(wait time.Duration) (*Lease, error) {
	ctx, cancel := g.caller, context.CancelFunc(func() {})
	if wait > 0 {
		g.ends = time.Now().Add(wait)
		ctx, cancel = context.WithDeadline(g.caller, g.ends)
	}
	defer cancel()
	for {
		lease, err := g.gather(ctx)
		var lost *memberLost
		switch {
		case err == nil:
			return lease, nil
		case !errors.As(err, &lost):
			return nil, g.refusal(ctx, err)
		case errors.Is(lost.cause, ErrClosed):
			return nil, ErrClosed
		case g.try || ctx.Err() != nil:
			return nil, &NotAcquiredError{Name: lost.name, cause: errors.Join(ended(g.caller), lost.cause)}
		}
		pause(ctx, firstPause, nil, nil) // should they always be lost, no busy loop
	}
}

// refusal is the error of a call that err has ended, or the end of the caller's context meanwhile. An outage that
// lasted until the time was up is a refusal too, as it is for a single lock.
func (g *gathering) refusal(ctx context.Context, err error) error {
	var busy *NotAcquiredError
	switch cause := ended(g.caller); {
	case ctx.Err() == nil:
		return err
	case errors.As(err, &busy):
		if cause == nil || errors.Is(err, g.caller.Err()) {
			return err
		}
		return &NotAcquiredError{Name: busy.Name, RetryAfter: busy.RetryAfter, cause: errors.Join(busy.cause, cause)}
	case errors.Is(err, ErrUnavailable):
		return &NotAcquiredError{Name: g.multi.name, cause: errors.Join(cause, ErrUnavailable)}
	}
	return err
}

func (g *gathering) gather(ctx context.Context) (*Lease, error) {
	var busy *NotAcquiredError
	if g.multi.mutexes != nil && (g.try || g.undisturbed()) {
		lease, err := g.atOnce()
		switch {
		case errors.Is(err, ErrWrongType), errors.Is(err, errOtherStrategy), crossSlot(err):
			// By itself, the member that is to blame tells more.
		case g.try, err == nil, ctx.Err() != nil, errors.Is(err, ErrUnavailable), !errors.As(err, &busy):
			return lease, err
		}
	}
	heard := time.Now()
	members, err := g.multi.order(ctx)
	if err != nil {
		return nil, err
	}
	lease, err := g.inTurn(ctx, members)
	if busy != nil && time.Since(heard) < stallTimeout && errors.Is(err, ErrNotAcquired) && errors.Is(err, ErrUnavailable) {
		// The time was up before the next answer. That is no outage: there was one just now.
		err = &NotAcquiredError{Name: busy.Name, RetryAfter: busy.RetryAfter, cause: ended(g.caller)}
	}
	return lease, err
}

// inTurn locks one member after the other.
func (g *gathering) inTurn(ctx context.Context, members []member) (joint *Lease, err error) {
	turn, cut := context.WithCancelCause(g.caller)
	defer cut(nil)
	var held []*Lease
	defer func() {
		if joint == nil { // or there is a panic in a hook
			letGo(ctx, held)
		}
	}()
	for _, m := range members {
		lease, err := g.lock(turn, m, held)
		if err != nil {
			return nil, cmp.Or(g.lost(held), err)
		}
		held = append(held, lease)
		defer lease.ending.bind(cut)()
	}
	patience := forever
	if g.try {
		patience = 0
	}
	token, err := raise(ctx, held, patience)
	if err := cmp.Or(g.lost(held), err); err != nil {
		return nil, err
	}
	return newJoint(g.caller, g.multi.name, held, token), nil
}

// lock locks the next member. If that is somebody else's and in truth one of those held already, it is entered again.
func (g *gathering) lock(ctx context.Context, m member, held []*Lease) (*Lease, error) {
	if m.own == nil {
		for _, l := range held {
			ctx = l.within(ctx)
		}
	}
	var lease *Lease
	var err error
	switch left := time.Until(g.ends); {
	case g.try:
		lease, err = m.TryLock(ctx, g.opts...)
	case g.ends.IsZero():
		lease, err = m.Lock(ctx, g.opts...)
	case left <= 0:
		return nil, &NotAcquiredError{Name: m.name}
	default:
		lease, err = m.Lock(ctx, append(slices.Clip(g.opts), WithWait(left))...)
	}
	if err == nil && lease == nil {
		err = invalidOption("Multi: locking %q returned neither a lease nor an error", m.name)
	}
	return lease, err
}

// lost returns a [memberLost] if one of these is over although nobody let go of it.
func (g *gathering) lost(held []*Lease) error {
	for _, l := range held {
		if l.ending.cause() != nil {
			return &memberLost{name: l.Name(), cause: l.ending.cause()}
		}
	}
	return nil
}

// letGo releases what was locked in vain. It waits for that; once ctx has ended, only for the answers that are on
// their way.
func letGo(ctx context.Context, held []*Lease) {
	if len(held) == 0 {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		held[0].keeper.recovered(func() { _ = releaseTogether(context.WithoutCancel(ctx), held, neverHeld) })
	}()
	select {
	case <-done:
	case <-ctx.Done():
		pause(context.Background(), releaseGrace, done, nil)
	}
}
