package core

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"
)

// holding is what the context of a lease carries: who holds which lock with which token, and the leases within
// whose contexts it was taken.
type holding struct {
	lease *Lease
	whole *Lease // the joint lease of which it is a part; nil if there is none
	token int64
	outer *holding
}

// over reports whether the lease has ended, or the joint lease of which it is a part.
func (h *holding) over() bool {
	return h.lease.end.Cause() != nil || h.whole != nil && h.whole.end.Cause() != nil
}

type holdingKey struct{}

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
func (h *holding) of(k *keeper, lock string) *holding {
	var other *holding
	for ; h != nil; h = h.outer {
		switch {
		case h.lease.hold.keys.lock != lock, h.over():
		case sameRedis(h.lease.keeper, k):
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
	if h := holdingFrom(ctx); h != nil {
		return h.token, true
	}
	return 0, false
}

// newID names an owner or a hold: the client's UUID and a number that is never used again. An owner is named
// like the first of its holds.
func (k *keeper) newID() string {
	var digits [20]byte
	return k.id + ":" + string(strconv.AppendUint(digits[:0], k.counter.Add(1), 10))
}

// renewID gives a hold a new, unique ID.
func (k *keeper) renewID(h *hold) {
	var digits [20]byte
	number := strconv.AppendUint(digits[:0], k.counter.Add(1), 10)
	h.released = released + h.keys.tag + ":" + k.id + ":" + string(number)
	h.id = h.released[len(h.released)-len(k.id)-1-len(number):]
	h.unanswered = 0
	h.setScriptArgs()
}

// setID sets the ID of a hold.
func (h *hold) setID(id string) {
	h.id, h.released = id, h.keys.released(id)
	h.setScriptArgs()
}

// parentID returns the hold under which this one is a re-entry, "" if there is none.
func (h *hold) parentID() string {
	if h.parent == nil {
		return ""
	}
	return h.parent.lease.hold.id
}

// parentEnded reports whether this is a re-entry under a lease that has ended.
func (h *hold) parentEnded() bool { return h.parent != nil && h.parent.over() }

// dropEndedParent makes a re-entry a new owner if the lease under which it re-enters has ended. Why: Redis may keep that
// hold for some time, and would let several callers with the context of the lease in together. If an earlier request is
// uncertain or queued, its hold is replaced first, because it belongs to the old owner.
func (r *acquisition) dropEndedParent(ctx context.Context) {
	if !r.entered {
		return
	}
	holds := []*hold{&r.hold}
	if all, ok := r.protocol.(mutexBatch); ok {
		holds = holds[:0]
		for i := range all.holds {
			holds = append(holds, &all.holds[i])
		}
	}
	if !slices.ContainsFunc(holds, (*hold).parentEnded) {
		return
	}
	if r.uncertain || r.queued {
		r.replaceHold(ctx, r.lastErr)
	}
	for _, h := range holds {
		switch {
		case !h.parentEnded():
		case h == &r.hold:
			h.owner, h.parent = h.id, nil
		default:
			h.owner, h.parent = "", nil // that of the whole
		}
	}
}

// scriptArgs are parts of a hold as arguments of scripts. Why kept: each conversion to any costs an allocation.
type scriptArgs struct {
	lock, token, waitingClients, released, id any
}

func (h *hold) setScriptArgs() {
	if h.scriptArgs.lock == nil {
		h.scriptArgs.lock, h.scriptArgs.token, h.scriptArgs.waitingClients = h.keys.lock, h.keys.token, h.keys.waitingClients
	}
	h.scriptArgs.released, h.scriptArgs.id = h.released, h.id
}

// ownerArg returns the owner as an argument.
func (h *hold) ownerArg() any {
	if h.owner == h.id {
		return h.scriptArgs.id
	}
	return h.owner
}

// lockField reports whether a field of a lock's hash is something else than an owner who holds it exclusively.
func lockField(field string) bool {
	switch field {
	case "mode", "token", "granted", "ttl", "min_hold_until", "exclusive_owner", "exclusive_until", "has_shares",
		"readers_first_until", "grant_id", "token_committed", "has_waiting_clients":
		return true
	}
	for _, prefix := range []string{"hold:", "share:", readField} {
		if strings.HasPrefix(field, prefix) {
			return true
		}
	}
	return false
}

// readField begins the fields of owners who share the lock.
const readField = "read:"
