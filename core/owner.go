package core

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/seal"
)

// holding is what the context of a lease carries: which owner holds which lock with which token, and the leases within
// whose contexts it was taken.
type holding struct {
	lease *Lease
	whole *Lease // the joint lease of which it is a part; nil if there is none
	token int64
	outer *holding
}

// Ended implements acquire.Parent: it reports whether the lease has ended, or the joint lease of which it is a part.
func (h *holding) Ended() bool {
	return h.lease.end.Cause() != nil || h.whole != nil && h.whole.end.Cause() != nil
}

// entered returns the lease that a grant with this token has entered, nil if there is none. Why the token: the lease of another
// client may lie in another Redis, and then the grant has a token of its own.
func (h *holding) entered(e *engine, token int64) *Lease {
	if h == nil || !sameRedis(h.lease.engine, e) && token != h.token && token != h.lease.token {
		return nil
	}
	return h.lease
}

type holdingKey struct{}

// warnOfOwner warns of an owner for all locks of a client. Why it is allowed: the processes of one piece of work may have clients
// of their own, which no other piece of work uses.
func (e *engine) warnOfOwner() {
	if e.lock.owner != "" {
		e.logger.Warn("holdfast: WithOwner is set for a whole client: no two calls of that owner exclude each other")
	}
}

// leaseContext is the context of a lease without its end: what it carries, and the values of the caller's. It is a part of the
// lease, because each would otherwise cost allocations of its own.
type leaseContext struct {
	holding
	caller context.Context
}

func (*leaseContext) Deadline() (deadline time.Time, ok bool) { return }
func (*leaseContext) Done() <-chan struct{}                   { return nil }
func (*leaseContext) Err() error                              { return nil }

func (b *leaseContext) Value(key any) any {
	if key == (holdingKey{}) {
		return &b.holding
	}
	return b.caller.Value(key)
}

// withHolding adds a lease to what ctx carries, and the joint lease of which it is a part, if there is one.
func withHolding(ctx context.Context, l, whole *Lease, token int64) context.Context {
	return context.WithValue(ctx, holdingKey{}, &holding{l, whole, token, holdingFrom(ctx)})
}

// holdingFrom returns the innermost lease that ctx carries, nil if there is none.
func holdingFrom(ctx context.Context) *holding {
	h, _ := ctx.Value(holdingKey{}).(*holding)
	return h
}

// of returns the innermost lease of that lock within whose context another was taken, nil if there is none. A lease that
// is over does not count: several goroutines may still have its context, without its end, and nothing would keep them
// apart. One of the same Redis comes before one of another client, which may reach the same Redis by another connection,
// or not.
func (h *holding) of(e *engine, lock string) *holding {
	var other *holding
	for ; h != nil; h = h.outer {
		switch {
		case h.lease.hold.Keys.Lock != lock, h.Ended():
		case sameRedis(h.lease.engine, e):
			return h
		case other == nil:
			other = h
		}
	}
	return other
}

// TokenFrom returns the fencing token of the innermost lease whose context ctx is or descends from. It returns false
// if there is none. Send the token with every write to the resource that the lock protects, and let the resource
// refuse a token smaller than one it has seen. That stops a holder which was paused while its lease expired
// (Kleppmann, "How to do distributed locking", 2016).
//
// If you hold one lock inside another, TokenFrom returns the token of the inner one. Read the outer token before.
func TokenFrom(ctx context.Context) (int64, bool) {
	h := holdingFrom(ctx)
	if h == nil {
		h = holdingFrom(seal.ContextOf(ctx))
	}
	if h != nil {
		return h.token, true
	}
	return 0, false
}
