package core

import (
	"cmp"
	"context"
	"reflect"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// The order in which every Multi locks its members, so that no two wait for each other (lock ordering). The order must
// not depend on the caller, and it must be total.

// before compares members by what is known of them.
func (a member) before(b member) int {
	return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.key, b.key), cmp.Compare(a.where, b.where))
}

// sort brings the members into order and refuses those that are certainly there twice.
func (m *multiLock) sort() error {
	slices.SortStableFunc(m.members, member.before)
	keys := make(map[string][]*singleLock)
	for _, b := range m.members {
		for _, other := range keys[b.key] {
			if sameRedis(other.engine, b.engine) {
				return invalidOption("Multi: %q is a member twice", b.name)
			}
			m.needsDeployments = true
		}
		keys[b.key] = append(keys[b.key], b.singleLock)
	}
	return nil
}

// order returns the members in order. Those with one key and different connections may lie in the same place, where
// the second would wait for the first, or in places whose order has to be the same for all callers that lock both.
func (m *multiLock) order(ctx context.Context) ([]member, error) {
	if !m.needsDeployments {
		return m.members, nil
	}
	count := make(map[string]int)
	for _, member := range m.members {
		count[member.key]++
	}
	members := slices.Clone(m.members)
	errs := transport.DoGrouped(ctx, len(members), func(ctx context.Context, i int) (err error) {
		if b := &members[i]; count[b.key] > 1 {
			b.where, err = b.location(ctx)
		}
		return err
	})
	if err := primaryError(errs); err != nil {
		return nil, err
	}
	slices.SortStableFunc(members, member.before)
	type spot struct{ key, where string }
	seen := make(map[spot]bool)
	for _, b := range members {
		at := spot{b.key, b.where}
		if b.where != "" && seen[at] {
			return nil, invalidOption("Multi: %q is a member twice: two clients reach the same Redis", b.name)
		}
		seen[at] = true
	}
	return members, nil
}

// sameRedis reports whether two clients certainly reach the same Redis, without asking.
func sameRedis(a, b *engine) bool {
	return a == b || slices.EqualFunc(a.redis, b.redis, func(a, b redis.UniversalClient) bool {
		return reflect.ValueOf(a).Comparable() && a == b
	})
}

// location asks for the name of the place where the lock lies: the same for all clients that reach it, whatever their
// connection, and another one on any other server or database. It is kept beside the lock rather than made of what
// the server tells of itself, because it then lives exactly as long as the lock's own state, through restarts,
// failovers and moves of slots, and needs no rights that the lock does not need.
func (l *singleLock) location(ctx context.Context) (where string, err error) {
	e := l.engine
	if !e.operations.Start() {
		return "", ErrClosed
	}
	defer e.operations.Finish()
	err = transport.RetryUntilAnswered(ctx, func(ctx context.Context) (err error) {
		where, err = l.strategy.DeploymentID(ctx, l.keys)
		return err
	})
	if err != nil {
		return "", errorf("holdfast: lock %q: %w", l.name, failure(ctx, l.keys.Lock, err))
	}
	return where, nil
}
