package keepalive

import (
	"context"
	"errors"
	"sync"
)

// End is the end of a lease and its cause. The zero value has not ended. It is safe for concurrent use.
//
// The context is made by the first call of Context. Why: a caller that only locks and unlocks needs none, and it would cost
// allocations.
type End struct {
	mu sync.Mutex

	// Guarded by mu.
	reason error        // nil until the end
	held   heldContext  // its Context is nil until the first call of Context
	bound  *boundCancel // what Set calls; nil for an empty list

	outer *End // that Follow was called with; nil without
}

// boundCancel is one element of a list of cancel functions that Set calls. Why not [context.AfterFunc]: it would start a
// goroutine.
type boundCancel struct {
	end  context.CancelCauseFunc
	next *boundCancel
}

// Expirer is a lease that can end by the clock.
type Expirer interface {
	// EndIfOver ends the lease if it is over by the clock. It must not block.
	EndIfOver()
}

// heldContext is a context that ends with a lease. Its Err asks the clock too. Why: after a suspend of the host, or a pause of
// the process, the timer that ends the lease may fire later than the holder asks.
type heldContext struct {
	context.Context // which the lease has been bound to
	lease           Expirer
}

// Err implements context.Context.
func (c *heldContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	c.lease.EndIfOver()
	return c.Context.Err()
}

// Context returns the context that ends with the lease, with its cause. The first call decides on the parent: the context
// has its values, and also ends with it. If the lease has ended, so has the context. The Err of the context is nil only while
// the lease is valid by the clock.
func (e *End) Context(parent context.Context, lease Expirer) context.Context {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.held.Context == nil {
		ctx, cancel := context.WithCancelCause(parent)
		e.held, e.bound = heldContext{ctx, lease}, &boundCancel{cancel, e.bound}
		if e.reason != nil {
			cancel(e.reason)
		}
	}
	return &e.held
}

// Within returns a context that has the values of parent, and ends with it, with the lease, or when cancel is called. Its
// Err is as that of Context. The caller must call unbind when the lease need not end the context any more, and cancel.
func (e *End) Within(parent context.Context, lease Expirer) (ctx context.Context, cancel context.CancelCauseFunc, unbind func()) {
	ctx, cancel = context.WithCancelCause(parent)
	return &heldContext{ctx, lease}, cancel, e.Bind(cancel)
}

// Bind has end called with the cause when the lease ends, at once if it has ended. The caller must call unbind when that is
// no longer needed. To call unbind again, or after the end, does nothing.
func (e *End) Bind(end context.CancelCauseFunc) (unbind func()) {
	e.mu.Lock()
	if cause := e.reason; cause != nil {
		e.mu.Unlock() // first: end may call methods of this End
		end(cause)
		return func() {}
	}
	defer e.mu.Unlock()
	b := &boundCancel{end, e.bound}
	e.bound = b
	return func() { e.unbind(b) }
}

// Follow has ended called with the cause when outer ends, or an End that outer follows, until e ends. So it is called for an
// outermost lease even if one between has ended before. Follow must be called once at most, before other goroutines can
// follow e.
func (e *End) Follow(outer *End, ended context.CancelCauseFunc) {
	e.outer = outer
	for ; outer != nil; outer = outer.outer {
		unbind := outer.Bind(ended)
		e.Bind(func(error) { unbind() })
	}
}

// unbind takes b out of the list, if it is there.
func (e *End) unbind(b *boundCancel) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for at := &e.bound; *at != nil; at = &(*at).next {
		if *at == b {
			*at = b.next
			return
		}
	}
}

// Cause returns why the lease has ended. It returns nil if the lease has not ended.
func (e *End) Cause() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.reason
}

// Set ends the lease with this cause, which must not be nil. It does nothing if the lease has ended. It calls the bound
// functions after mu is unlocked. Why: they may call methods of this End.
func (e *End) Set(cause error) {
	e.mu.Lock()
	if e.reason != nil {
		e.mu.Unlock()
		return
	}
	e.reason = cause
	bound := e.bound
	e.bound = nil
	e.mu.Unlock()
	for ; bound != nil; bound = bound.next {
		bound.end(cause)
	}
}

// Cause is why a lease has ended although its holder has not released it. It is an error, so that the answer to a renewal
// can carry it. The zero value is no cause.
type Cause int

// The causes. The first three are found by the local clock, the others by the answer to a renewal.
const (
	Expired     Cause = iota + 1 // no renewal has succeeded in time
	FixedTTL                     // the TTL of a lease without renewals has expired
	HeldTooLong                  // Terms.MaxHold has passed, or the instant of LimitTo
	Gone                         // the hold is not in Redis any more
	Replaced                     // another owner has the lock in Redis
	Taken                        // the hold expired, is gone or was replaced in Redis: it is not known which
)

// Error returns the cause in a few words, for logs and for wrapping errors.
func (c Cause) Error() string {
	switch c {
	case Expired:
		return "expired"
	case FixedTTL:
		return "its fixed TTL has expired"
	case HeldTooLong:
		return "held for too long"
	case Gone:
		return "gone"
	case Replaced:
		return "replaced"
	}
	return "taken"
}

// IsCause returns true if err is or wraps a [Cause], so that the lease is lost. It returns false for nil and for errors of
// the transport, after which the next renewal may succeed.
func IsCause(err error) bool {
	var c Cause
	return errors.As(err, &c)
}
