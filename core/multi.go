package core

import (
	"cmp"
	"context"
	"log/slog"
	"strings"

	"github.com/holdfast-go/holdfast/internal/seal"
)

// Multi returns a lock of all these locks at once: all are held, or none. They may be of any strategy and of several
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
// key and different connections, Lock and TryLock leave a mark in Redis that distinguishes the deployments.
func Multi(locks ...*Lock) *Lock {
	m := &multiLock{}
	m.lock = Lock{seal.HandleOf(m), m}
	if len(locks) == 0 {
		m.refuse(invalidOption("Multi: no members"))
	}
	names := make([]string, len(locks))
	for i, l := range locks {
		kind, err := l.is()
		if err != nil {
			m.refuse(invalidOption("Multi: member %d is nil", i+1))
			continue
		}
		names[i] = kind.fullName()
		kind.join(m)
	}
	m.name = strings.Join(names, "+")
	if m.err == nil {
		m.err = m.sort()
	}
	if m.err == nil {
		m.batch = m.batchable()
	}
	return &m.lock
}

// multiLock is what [Multi] makes.
type multiLock struct {
	lock             Lock // itself, for users
	name             string
	members          []member      // sorted
	needsDeployments bool          // the order of some of them depends on where they lie
	batch            []*singleLock // the same, if one script can grant them all
	err              error
}

// member is one lock of a Multi.
type member struct {
	*singleLock
	key   string // in Redis
	where string // it lies, see location; asked for only if the key does not decide
}

// join makes the lock a member of m.
func (l *singleLock) join(m *multiLock) {
	if l.err != nil { // its name may be very long
		m.refuse(l.err)
		return
	}
	m.members = append(m.members, member{singleLock: l, key: l.engine.prefix + l.name})
}

// join makes the members of n members of m.
func (n *multiLock) join(m *multiLock) {
	m.refuse(n.err)
	m.members = append(m.members, n.members...)
}

func (m *multiLock) refuse(err error) {
	if m.err == nil {
		m.err = err
	}
}

func (m *multiLock) fullName() string { return m.name }

// Facts implements [seal.Source].
func (m *multiLock) Facts() seal.Facts {
	if len(m.members) == 0 {
		return seal.Facts{Logger: slog.Default()}
	}
	all := m.members[0].Facts()
	for _, member := range m.members[1:] {
		one := member.Facts()
		if all.Mode == string(ModeRead) {
			all.Mode = one.Mode
		}
		all.Limit = min(all.Limit, one.Limit)
	}
	return all
}

func (m *multiLock) check() error {
	for _, member := range m.members {
		if err := member.check(); err != nil {
			return err
		}
	}
	return m.err
}

func (m *multiLock) acquire(ctx context.Context, try bool, opts []LockOption) (*Lease, error) {
	call := (&lockConfig{wait: -1}).with(opts)
	if err := cmp.Or(m.err, call.err); err != nil {
		return nil, err
	}
	for _, member := range m.members {
		// Before anything is locked, rather than when its turn comes.
		if err := member.config.with(opts).check(member.engine.redis); err != nil {
			return nil, err
		}
	}
	g := &multiAcquire{multi: m, caller: ctx, try: try || call.wait == 0, opts: opts}
	if try {
		call.wait = -1
	}
	return g.run(call.wait)
}
