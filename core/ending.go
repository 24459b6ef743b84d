package core

import (
	"context"
	"sync"
)

// ending is the end of a lease, and why it has come. The context that tells of it is made for those who ask for it: who
// locks and unlocks needs none.
type ending struct {
	mu    sync.Mutex
	why   error // nil until the end
	ctx   context.Context
	bonds *bond
}

// bond is something else that ends with the lease: at once and without a goroutine of its own, as [context.AfterFunc]
// would start one.
type bond struct {
	end  context.CancelCauseFunc
	next *bond
}

// context returns the one that ends with the lease, with the values of its parent, which has no end.
func (e *ending) context(parent context.Context) context.Context {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx == nil {
		ctx, cancel := context.WithCancelCause(parent)
		e.ctx, e.bonds = ctx, &bond{cancel, e.bonds}
		if e.why != nil {
			cancel(e.why)
		}
	}
	return e.ctx
}

// bind lets something end with the lease, unless it is loosened before.
func (e *ending) bind(end context.CancelCauseFunc) (loosen func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.why != nil {
		end(e.why)
		return func() {}
	}
	b := &bond{end, e.bonds}
	e.bonds = b
	return func() { e.loosen(b) }
}

func (e *ending) loosen(b *bond) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for at := &e.bonds; *at != nil; at = &(*at).next {
		if *at == b {
			*at = b.next
			return
		}
	}
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
	bonds := e.bonds
	e.bonds = nil
	e.mu.Unlock()
	for ; bonds != nil; bonds = bonds.next {
		bonds.end(cause)
	}
}
