package keepalive

import (
	"context"
	"sync"
)

// End is the end of a lease and its cause. The zero value has not ended. It is safe for concurrent use.
//
// The context is made by the first call of Context. Why: a caller that only locks and unlocks needs none, and it would cost
// allocations.
type End struct {
	mu sync.Mutex

	// Guarded by mu.
	reason error           // nil until the end
	ctx    context.Context // nil until the first call of Context
	bound  *boundCancel    // what Set calls; nil for an empty list

	outer *End // that Follow was called with; nil without
}

// boundCancel is one element of a list of cancel functions that Set calls. Why not [context.AfterFunc]: it would start a
// goroutine.
type boundCancel struct {
	end  context.CancelCauseFunc
	next *boundCancel
}

// Context returns the context that ends with the lease, with its cause. The first call decides on the parent: the context
// has its values, and also ends with it. If the lease has ended, so has the context.
func (e *End) Context(parent context.Context) context.Context {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx == nil {
		ctx, cancel := context.WithCancelCause(parent)
		e.ctx, e.bound = ctx, &boundCancel{cancel, e.bound}
		if e.reason != nil {
			cancel(e.reason)
		}
	}
	return e.ctx
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
