package keepalive

import (
	"context"
	"sync"
)

// End is the end of a lease and its cause. Its context is made when it is first needed. Why: a caller that only locks
// and unlocks needs none, and it would cost allocations.
type End struct {
	mu     sync.Mutex
	reason error // nil until the end
	ctx    context.Context
	bound  *boundCancel
}

// boundCancel is a cancel function that is called at the end of the lease. Why not [context.AfterFunc]: it would start a
// goroutine.
type boundCancel struct {
	end  context.CancelCauseFunc
	next *boundCancel
}

// Context returns the context that ends with the lease. It has the values of parent.
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

// Bind has end called when the lease ends. The caller must call loosen when that is no longer needed.
func (e *End) Bind(end context.CancelCauseFunc) (loosen func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.reason != nil {
		end(e.reason)
		return func() {}
	}
	b := &boundCancel{end, e.bound}
	e.bound = b
	return func() { e.loosen(b) }
}

func (e *End) loosen(b *boundCancel) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for at := &e.bound; *at != nil; at = &(*at).next {
		if *at == b {
			*at = b.next
			return
		}
	}
}

// Cause returns why the lease has ended, nil if it has not.
func (e *End) Cause() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.reason
}

// Set ends the lease with this cause, if it has not ended.
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
