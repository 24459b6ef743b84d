package core

import (
	"context"
	"sync"
)

// ending is the end of a lease, and why it has come. The context that tells of it is made for those who ask for it: who
// locks and unlocks needs none.
type ending struct {
	mu     sync.Mutex
	why    error // nil until the end
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// context returns the one that ends with the lease, with the values of its parent, which has no end.
func (e *ending) context(parent context.Context) context.Context {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx == nil {
		e.ctx, e.cancel = context.WithCancelCause(parent)
		if e.why != nil {
			e.cancel(e.why)
		}
	}
	return e.ctx
}

// cause returns why the lease is over, nil if it is not.
func (e *ending) cause() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.why
}

// come ends the lease, if it is not over.
func (e *ending) come(cause error) {
	e.mu.Lock()
	if e.why != nil {
		e.mu.Unlock()
		return
	}
	e.why = cause
	cancel := e.cancel
	e.mu.Unlock()
	if cancel != nil {
		cancel(cause)
	}
}
