package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// multiAcquire is one call of Lock or TryLock of a Multi.
type multiAcquire struct {
	multi    *multiLock
	caller   context.Context // its end is an error of the call
	try      bool            // ask for each once
	opts     []LockOption
	deadline time.Time // by WithWait; zero if it does not
}

// memberLost is the error of a Multi of which one member was lost before all were acquired.
type memberLost struct {
	name  string
	cause error
}

func (e *memberLost) Error() string { return fmt.Sprintf("holdfast: lock %q: %v", e.name, e.cause) }

// run acquires the members until there is a lease or a reason to stop. The context that it derives ends with the context of the
// caller and with the time of WithWait. Errors are built from the caller's context only: the end of WithWait is no error
// of a context.
func (g *multiAcquire) run(wait time.Duration) (*Lease, error) {
	ctx, cancel := g.caller, context.CancelFunc(func() {})
	if wait > 0 {
		g.deadline = time.Now().Add(wait)
		ctx, cancel = context.WithDeadline(g.caller, g.deadline)
	}
	defer cancel()
	for {
		lease, err := g.acquireAll(ctx)
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
		keepalive.Pause(ctx, transport.FirstRetryInterval, nil, nil) // should they always be lost, no busy loop
	}
}

// refusal is the error of a call that err has ended, or the end of the caller's context meanwhile. An outage that
// lasted until the time was up is a refusal too, as it is for a single lock.
func (g *multiAcquire) refusal(ctx context.Context, err error) error {
	var busy *NotAcquiredError
	switch cause := ended(g.caller); {
	case ctx.Err() == nil:
		return err
	case errors.As(err, &busy):
		if cause == nil || errors.Is(err, g.caller.Err()) {
			return err
		}
		return busy.with(errors.Join(busy.cause, cause))
	case errors.Is(err, ErrUnavailable):
		return &NotAcquiredError{Name: g.multi.name, cause: errors.Join(cause, err)}
	}
	return err
}

// acquireAll asks for all members at once. If one is held, it locks one after the other. Callers of this process that wait for a member
// come first, so that a Lock asks at once only if there are none.
func (g *multiAcquire) acquireAll(ctx context.Context) (*Lease, error) {
	members, err := g.multi.order(ctx)
	if err != nil {
		return nil, err
	}
	var busy *NotAcquiredError
	if g.try || g.noLocalWaiters() {
		lease, err := g.acquire(ctx, members, g.tryTogether)
		if err == nil || ctx.Err() != nil || !errors.As(err, &busy) || errors.Is(err, ErrUnavailable) {
			return lease, err
		}
	}
	answeredAt := time.Now()
	lease, err := g.acquire(ctx, members, g.lockInTurn)
	if busy != nil && time.Since(answeredAt) < transport.StallTimeout && errors.Is(err, ErrNotAcquired) && errors.Is(err, ErrUnavailable) {
		// The time was up before the next answer. That is no outage: there was one just now.
		err = busy.with(ended(g.caller))
	}
	return lease, err
}

// acquire locks the members with lock, and makes one lease of their leases. If lock or a hook fails, it releases what was locked.
// Lock puts each lease at the place of its member, and has cut called if the lease ends by itself.
func (g *multiAcquire) acquire(
	ctx context.Context, members []member, lock func(turn context.Context, members []member, held []*Lease, cut context.CancelCauseFunc) error,
) (combined *Lease, err error) {
	turn, cut := context.WithCancelCause(g.caller)
	defer cut(nil)
	held := make([]*Lease, len(members))
	defer func() {
		if combined == nil { // or there is a panic in a hook
			releaseMembers(ctx, slices.DeleteFunc(held, func(l *Lease) bool { return l == nil }))
		}
	}()
	if err := lock(turn, members, held, cut); err != nil {
		return nil, cmp.Or(g.lostMember(held), err)
	}
	patience := transport.NoLimit
	if g.try {
		patience = 0
	}
	token, err := raise(ctx, held, patience)
	if err := cmp.Or(g.lostMember(held), err); err != nil {
		return nil, err
	}
	return newMultiLease(g.caller, g.multi.name, held, token), nil
}

// tryTogether asks for all members once, at the same time: in one batch for each server, which has them in their order.
func (g *multiAcquire) tryTogether(turn context.Context, members []member, held []*Lease, _ context.CancelCauseFunc) error {
	return cmp.Or(transport.DoGrouped(turn, len(members), func(ctx context.Context, i int) (err error) {
		held[i], err = g.lockMember(ctx, members[i], askOnce)
		return err
	})...)
}

// lockInTurn locks one member after the other, in the order of members.
func (g *multiAcquire) lockInTurn(turn context.Context, members []member, held []*Lease, cut context.CancelCauseFunc) (err error) {
	for i, m := range members {
		if held[i], err = g.lockMember(turn, m); err != nil {
			return err
		}
		defer held[i].end.Bind(cut)()
	}
	return nil
}

// lockMember locks a member in the time that is left, with further options.
func (g *multiAcquire) lockMember(ctx context.Context, m member, further ...LockOption) (*Lease, error) {
	left := time.Until(g.deadline)
	switch {
	case g.try || g.deadline.IsZero():
	case left <= 0:
		return nil, &NotAcquiredError{Name: m.name}
	default:
		further = append(further, WithWait(max(left, leastLimit)))
	}
	return m.acquire(ctx, g.try, append(slices.Clip(g.opts), append(further, ofMulti)...))
}

// lostMember returns a [memberLost] if one of these leases has ended by itself, nil otherwise.
func (g *multiAcquire) lostMember(held []*Lease) error {
	for _, l := range held {
		if l != nil && l.end.Cause() != nil {
			return &memberLost{name: l.Name(), cause: l.end.Cause()}
		}
	}
	return nil
}

// releaseMembers releases the members of a Multi that was not acquired. It waits for the releases; if ctx ends, only for
// transport.ReleaseGrace.
func releaseMembers(ctx context.Context, held []*Lease) {
	if len(held) == 0 {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		held[0].engine.recovered(func() { _ = releaseTogether(context.WithoutCancel(ctx), held, script.NeverHeld) })
	}()
	select {
	case <-done:
	case <-ctx.Done():
		keepalive.Pause(context.Background(), transport.ReleaseGrace, done, nil)
	}
}

// noLocalWaiters reports whether no caller of this process waits for one of the members.
func (g *multiAcquire) noLocalWaiters() bool {
	return !slices.ContainsFunc(g.multi.members, func(m member) bool { return !m.engine.acquiring.Lists.Empty(m.key) })
}
