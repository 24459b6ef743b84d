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

// run acquires the members until there is a lease or a reason to stop. The context that it derives ends with that of the
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

func (g *multiAcquire) acquireAll(ctx context.Context) (*Lease, error) {
	var busy *NotAcquiredError
	if g.multi.batch != nil && (g.try || g.noLocalWaiters()) {
		lease, err := g.tryBatch()
		switch {
		case errors.Is(err, ErrWrongType), errors.Is(err, script.ErrOtherStrategy), transport.CrossSlot(err):
			// By itself, the member that is to blame tells more.
		case g.try, err == nil, ctx.Err() != nil, errors.Is(err, ErrUnavailable), !errors.As(err, &busy):
			return lease, err
		}
	}
	answeredAt := time.Now()
	members, err := g.multi.order(ctx)
	if err != nil {
		return nil, err
	}
	lease, err := g.lockSequentially(ctx, members)
	if busy != nil && time.Since(answeredAt) < transport.StallTimeout && errors.Is(err, ErrNotAcquired) && errors.Is(err, ErrUnavailable) {
		// The time was up before the next answer. That is no outage: there was one just now.
		err = busy.with(ended(g.caller))
	}
	return lease, err
}

// lockSequentially locks one member after the other, in the order of members.
func (g *multiAcquire) lockSequentially(ctx context.Context, members []member) (combined *Lease, err error) {
	turn, cut := context.WithCancelCause(g.caller)
	defer cut(nil)
	var held []*Lease
	defer func() {
		if combined == nil { // or there is a panic in a hook
			releaseMembers(ctx, held)
		}
	}()
	for _, m := range members {
		lease, err := g.lockMember(turn, m)
		if err != nil {
			return nil, cmp.Or(g.lostMember(held), err)
		}
		held = append(held, lease)
		defer lease.end.Bind(cut)()
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

// lockMember locks the next member.
func (g *multiAcquire) lockMember(ctx context.Context, m member) (*Lease, error) {
	switch left := time.Until(g.deadline); {
	case g.try:
		return m.acquire(ctx, true, g.opts)
	case g.deadline.IsZero():
		return m.acquire(ctx, false, g.opts)
	case left <= 0:
		return nil, &NotAcquiredError{Name: m.name}
	default:
		return m.acquire(ctx, false, append(slices.Clip(g.opts), WithWait(max(left, leastLimit))))
	}
}

// lostMember returns a [memberLost] if one of these leases has ended by itself, nil otherwise.
func (g *multiAcquire) lostMember(held []*Lease) error {
	for _, l := range held {
		if l.end.Cause() != nil {
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
