package core

import (
	"context"
	"fmt"
	"reflect"
	"time"
)

// locationMemory is how long the name of a place outlives its last use. It has to be longer than anybody waits.
const locationMemory = 24 * time.Hour

// sameRedis reports whether two clients certainly reach the same Redis, without asking.
func sameRedis(a, b *Client) bool {
	return a == b || reflect.ValueOf(a.exec.rdb).Comparable() && a.exec.rdb == b.exec.rdb
}

// location asks for the name of the place where the lock lies: the same for all clients that reach it, whatever their
// connection, and another one on any other server or database. It is kept beside the lock rather than made of what
// the server tells of itself, because it then lives exactly as long as the lock's own state, through restarts,
// failovers and moves of slots, and needs no rights that the lock does not need.
func (l *locker) location(ctx context.Context) (string, error) {
	c := l.client
	if !c.tasks.begin() {
		return "", ErrClosed
	}
	defer c.tasks.end()
	k := newKeys(c.prefix + l.name)
	var reply any
	err := insist(ctx, func(ctx context.Context) (err error) {
		reply, err = c.exec.do(ctx, locationScript, []string{k.location()}, c.newID(), milliseconds(locationMemory))
		return err
	})
	if err != nil {
		return "", fmt.Errorf("holdfast: lock %q: %w", l.name, failure(ctx, k.lock, err))
	}
	return fmt.Sprint(reply), nil
}
