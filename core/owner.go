package core

import (
	"context"
	"strconv"
	"strings"
)

// holding is what the context of a lease carries: who holds which lock with which token, and the leases within
// whose contexts it was taken.
type holding struct {
	owner  string
	token  int64
	keeper *keeper
	lock   string // the key
	outer  *holding
}

type holdingKey struct{}

// withHolding adds a lease to what ctx carries.
func withHolding(ctx context.Context, l *Lease, token int64) context.Context {
	outer := holdingFrom(ctx)
	return context.WithValue(ctx, holdingKey{}, &holding{
		owner: l.hold.owner, token: token, keeper: l.keeper, lock: l.hold.keys.lock, outer: outer,
	})
}

// holdingFrom returns the innermost lease that ctx carries, nil if there is none.
func holdingFrom(ctx context.Context) *holding {
	h, _ := ctx.Value(holdingKey{}).(*holding)
	return h
}

// of returns the lease of that lock within whose context another was taken, nil if there is none. One of the same
// Redis comes before one of another client, which may reach the same Redis by another connection, or not.
func (h *holding) of(k *keeper, lock string) *holding {
	var other *holding
	for ; h != nil; h = h.outer {
		switch {
		case h.lock != lock:
		case sameRedis(h.keeper, k):
			return h
		case other == nil:
			other = h
		}
	}
	return other
}

// TokenFrom returns the fencing token of the innermost lease whose context ctx is or descends from. It
// reports false if there is none. Send it with every write to the resource that the lock protects, and let
// the resource refuse a token smaller than one it has seen: that is what stops a holder which was paused
// while its lease ran out (Kleppmann, "How to do distributed locking", 2016).
//
// With one lock taken inside another, that is the inner one's token; take the outer one's before.
func TokenFrom(ctx context.Context) (int64, bool) {
	if h := holdingFrom(ctx); h != nil {
		return h.token, true
	}
	return 0, false
}

// newID names an owner or a hold: the client's UUID and a number that is never used again. An owner is named
// like the first of its holds.
func (k *keeper) newID() string {
	return k.id + ":" + strconv.FormatUint(k.counter.Add(1), 10)
}

// lockField reports whether a field of a lock's hash is something else than an owner who holds it exclusively.
func lockField(field string) bool {
	switch field {
	case "mode", "token", "granted", "ttl", "keep", "writer", "until", "reads", "gate", "grant", "settled":
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
