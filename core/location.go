package core

import (
	"context"
	"reflect"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// sameRedis reports whether two clients certainly reach the same Redis, without asking.
func sameRedis(a, b *keeper) bool {
	return a == b || slices.EqualFunc(a.redis, b.redis, func(a, b redis.UniversalClient) bool {
		return reflect.ValueOf(a).Comparable() && a == b
	})
}

// location asks for the name of the place where the lock lies: the same for all clients that reach it, whatever their
// connection, and another one on any other server or database. It is kept beside the lock rather than made of what
// the server tells of itself, because it then lives exactly as long as the lock's own state, through restarts,
// failovers and moves of slots, and needs no rights that the lock does not need.
func (l *locker) location(ctx context.Context) (where string, err error) {
	k := l.keeper
	if !k.operations.Start() {
		return "", ErrClosed
	}
	defer k.operations.Finish()
	err = transport.RetryUntilAnswered(ctx, func(ctx context.Context) (err error) {
		where, err = l.protocol.DeploymentID(ctx, l.keys)
		return err
	})
	if err != nil {
		return "", errorf("holdfast: lock %q: %w", l.name, failure(ctx, l.keys.Lock, err))
	}
	return where, nil
}
