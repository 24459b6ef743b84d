package core

import (
	"context"
	"strconv"
	"strings"
)

// holding is what the context of a lease carries: who holds, and the token of the innermost lease.
type holding struct {
	owner string
	token int64
}

type holdingKey struct{}

func withHolding(ctx context.Context, h holding) context.Context {
	return context.WithValue(ctx, holdingKey{}, h)
}

func holdingFrom(ctx context.Context) (holding, bool) {
	h, ok := ctx.Value(holdingKey{}).(holding)
	return h, ok
}

// TokenFrom returns the fencing token of the innermost lease whose context ctx is or descends from. It
// reports false if there is none. Send it with every write to the resource that the lock protects, and let
// the resource refuse a token smaller than one it has seen: that is what stops a holder which was paused
// while its lease ran out (Kleppmann, "How to do distributed locking", 2016).
func TokenFrom(ctx context.Context) (int64, bool) {
	h, ok := holdingFrom(ctx)
	return h.token, ok
}

// newID names an owner or a hold: the client's UUID and a number that is never used again. An owner is named
// like the first of its holds.
func (c *Client) newID() string {
	return c.id + ":" + strconv.FormatUint(c.counter.Add(1), 10)
}

// Fields of a lock's hash that are not owners.
const holdField = "hold:"

func lockField(field string) bool {
	switch field {
	case "mode", "token", "granted", "ttl", "keep":
		return true
	}
	return strings.HasPrefix(field, holdField)
}
