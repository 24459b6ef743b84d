package core

import (
	"cmp"
	"context"
	"reflect"
	"strings"
)

// Multi returns a lock of all lockers at once: all are held, or none. They may be of any strategy and of several
// clients, on several servers. A Multi among them counts as its members.
//
// Multi always locks members in one order, that of their names. So callers that name the same locks in another order
// do not deadlock. Use the same name for a lock wherever it is part of a Multi. Do not lock a Multi under the lease of
// a lock that others take inside a Multi.
//
// TryLock asks for each member in turn. At the first refusal it releases all and returns the error of that member.
// Lock holds and renews the earlier members while it waits for the later ones. If one is lost meanwhile, Lock starts
// again. Up to 64 mutexes of one client in one Cluster slot are first requested in one round trip, all or none. Hooks
// see that as a TryLock of each, and then, if one of them was held, the waiting for each.
//
// Options given to Lock or TryLock apply to every member, except [WithWait], which bounds the whole. The joint
// [Lease]:
//
//   - is valid until the earliest end of its members' leases;
//   - ends when one of them is lost, and then the others are released;
//   - has a context that enters each of them again;
//   - has a token greater than that of every earlier grant of each member, and smaller than that of every later one.
//
// If a member is a re-entry, the outer lease keeps its token, and a resource that has seen the joint token refuses it.
// Use the token of the innermost lease, see [TokenFrom].
//
// Multi does no I/O. Lock and TryLock return [ErrInvalidOption] if there are no members, if a member is nil, or if a
// member occurs twice, that is with the same key in the same Redis, whatever the strategy. For members with the same
// key and different connections, Lock and TryLock leave a mark in Redis that distinguishes the deployments. A Locker
// of another package needs a name of its own among the members, and its Lock and TryLock have to return a lease of
// this package.
func Multi(lockers ...Locker) Locker {
	m := &multi{}
	if len(lockers) == 0 {
		m.refuse(invalidOption("Multi: no members"))
	}
	names := make([]string, len(lockers))
	for i, l := range lockers {
		names[i] = m.add(i, l)
	}
	m.name = strings.Join(names, "+")
	if m.err == nil {
		m.err = m.sort()
	}
	if m.err == nil {
		m.batch = m.batchable()
	}
	return m
}

// multi is the [Locker] that [Multi] returns.
type multi struct {
	name             string
	members          []member  // sorted
	needsDeployments bool      // the order of some of them depends on where they lie
	batch            []*locker // the same, if one script can grant them all
	err              error
}

// member is one lock of a Multi.
type member struct {
	Locker
	name  string
	own   *locker // nil if it is an implementation of another package
	key   string  // in Redis, if it is known
	where string  // it lies, see location; asked for only if the key does not decide
}

// add takes in the i-th of the lockers and returns its name.
func (m *multi) add(i int, l Locker) string {
	b := member{Locker: l}
	switch l := l.(type) {
	case *multi:
		m.refuse(l.err)
		m.members = append(m.members, l.members...)
		return l.name
	case *locker:
		if m.refuse(l.err); l.err == nil {
			b.key = l.engine.prefix + l.name
		}
		b.name, b.own = l.name, l
	default:
		if l == nil || reflect.ValueOf(l).Kind() == reflect.Pointer && reflect.ValueOf(l).IsNil() {
			m.refuse(invalidOption("Multi: member %d is nil", i+1))
			return ""
		}
		b.name = l.Name()
	}
	m.members = append(m.members, b)
	return b.name
}

func (m *multi) refuse(err error) {
	if m.err == nil {
		m.err = err
	}
}

func (m *multi) Name() string { return m.name }

func (m *multi) Lock(ctx context.Context, opts ...LockOption) (*Lease, error) {
	return m.acquire(ctx, false, opts)
}

func (m *multi) TryLock(ctx context.Context, opts ...LockOption) (*Lease, error) {
	return m.acquire(ctx, true, opts)
}

func (m *multi) acquire(ctx context.Context, try bool, opts []LockOption) (*Lease, error) {
	call := (&lockConfig{wait: -1}).with(opts)
	if err := cmp.Or(m.err, call.err); err != nil {
		return nil, err
	}
	for _, member := range m.members {
		if member.own == nil {
			continue
		}
		// Before anything is locked, rather than when its turn comes.
		if err := member.own.config.with(opts).check(member.own.engine.redis, member.own.limit()); err != nil {
			return nil, err
		}
	}
	g := &multiAcquire{multi: m, caller: ctx, try: try || call.wait == 0, opts: opts}
	if try {
		call.wait = -1
	}
	return g.run(call.wait)
}
