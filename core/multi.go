package core

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// Multi returns a lock of all these locks at once: all are held, or none. They may be of any strategy and of several
// clients, on several servers. A Multi among them counts as its members.
//
// Multi always locks members in the order of their names. So callers that name the same locks in another order
// do not deadlock. Use the same name for a lock wherever it is part of a Multi. Do not lock a Multi under the lease of
// a lock that others take inside a Multi.
//
// Both ask for all members at once first, in one round trip for each server. Hooks see that as a TryLock of each. If one
// of them is held, the others are released, and TryLock and Lock go on with each member in turn. At the first refusal
// TryLock releases all and returns the error of that member. Lock holds and renews the earlier members while it waits for
// the later ones. If one is lost meanwhile, Lock starts again.
//
// Options given to Lock or TryLock apply to every member, except [WithWait], which bounds the whole. The joint
// [Lease]:
//
//   - is valid until the earliest end of its members' leases;
//   - ends when one of them is lost, and then the others are released;
//   - has a context that enters each of them again;
//   - has a token greater than the token of every earlier grant of each member, and smaller than the token of every later grant.
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
	return &m.lock
}

// multiLock is what [Multi] makes.
type multiLock struct {
	lock      Lock // itself, for users
	name      string
	members   []member        // sorted
	ambiguous map[string]bool // keys of several members, whose order depends on where they lie
	err       error
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
		if all.Lock.Mode == string(ModeRead) {
			all.Lock.Mode = one.Lock.Mode
		}
		all.Lock.Limit = min(all.Lock.Limit, one.Lock.Limit)
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

// The order in which every Multi locks its members, so that no two wait for each other (lock ordering). The order must
// not depend on the caller, and it must be total.

// before compares members by what is known of them.
func (a member) before(b member) int {
	return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.key, b.key), cmp.Compare(a.where, b.where))
}

// sort brings the members into order and refuses those that are certainly there twice.
func (m *multiLock) sort() error {
	slices.SortStableFunc(m.members, member.before)
	m.ambiguous = make(map[string]bool)
	keys := make(map[string][]*singleLock)
	for _, b := range m.members {
		for _, other := range keys[b.key] {
			if sameRedis(other.engine, b.engine) {
				return invalidOption("Multi: %q is a member twice", b.name)
			}
			m.ambiguous[b.key] = true
		}
		keys[b.key] = append(keys[b.key], b.singleLock)
	}
	return nil
}

// order returns the members in order. Members with one key and different connections may be stored in the same place, where
// the second would wait for the first, or in places whose order has to be the same for all callers that lock both.
func (m *multiLock) order(ctx context.Context) ([]member, error) {
	if len(m.ambiguous) == 0 {
		return m.members, nil
	}
	members := slices.Clone(m.members)
	errs := transport.DoGrouped(ctx, len(members), func(ctx context.Context, i int) (err error) {
		if b := &members[i]; m.ambiguous[b.key] {
			b.where, err = b.location(ctx)
		}
		return err
	})
	if err := primaryError(errs); err != nil {
		return nil, err
	}
	slices.SortStableFunc(members, member.before)
	seen := make(map[[2]string]bool)
	for _, b := range members {
		at := [2]string{b.key, b.where}
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

// location asks for the place where the lock lies, see [script.Strategy.DeploymentID].
func (l *singleLock) location(ctx context.Context) (where string, err error) {
	err = l.engine.operate(ctx, "lock", l.name, l.keys, func() error {
		return transport.RetryUntilAnswered(ctx, func(ctx context.Context) (err error) {
			where, err = l.strategy.DeploymentID(ctx, l.keys)
			return err
		})
	})
	return where, err
}

// multiLease is the lease of several locks. It ends when the lease of one of them does. Each of these leases is renewed,
// and reported to hooks, by itself.
type multiLease struct {
	lease   *Lease
	members []*Lease
	stops   []func() bool // of watching them
	over    atomic.Bool   // decides between Unlock and the first loss
}

// newMultiLease makes one lease of several. Its context has the values of ctx and the leases of all members, so that each
// of them can be entered again.
func newMultiLease(ctx context.Context, name string, members []*Lease, token int64) *Lease {
	j := &multiLease{members: members}
	first := members[0]
	j.lease = &Lease{engine: first.engine, token: token, multi: j}
	j.lease.handle = seal.HandleOf(keptLease{j.lease})
	j.lease.entry.Granted = first.entry.Granted
	j.lease.hold = script.Hold{Name: name, Owner: first.hold.Owner}
	var keys []string
	for _, l := range j.members {
		keys = append(keys, l.hold.Keys.Lock)
		j.lease.hold.TTL = max(j.lease.hold.TTL, l.hold.TTL)
	}
	j.lease.hold.Keys.Lock = strings.Join(keys, "+")
	within := j.lease.within(context.WithoutCancel(ctx))
	j.lease.base = leaseContext{*holdingFrom(within), within}
	for _, m := range members {
		j.stops = append(j.stops, context.AfterFunc(m.Context(), func() { j.memberEnded(m) }))
	}
	return j.lease
}

// within returns ctx with the ownership of all locks of the lease.
func (l *Lease) within(ctx context.Context) context.Context {
	if l.multi == nil {
		return withHolding(ctx, l, nil, l.token)
	}
	for _, m := range l.multi.members {
		ctx = withHolding(ctx, m, l, l.token)
	}
	return ctx
}

// memberEnded ends the multi-lease because a member has ended by itself, and releases the others. If that member is left
// to expire, so are the others. It runs on a goroutine of the client.
func (j *multiLease) memberEnded(m *Lease) {
	if !j.over.CompareAndSwap(false, true) {
		return
	}
	cause := m.end.Cause()
	j.lease.end.Set(cause)
	if leftToExpire(cause) {
		j.leaveToExpire(cause)
		return
	}
	others := slices.DeleteFunc(slices.Clone(j.members), func(l *Lease) bool { return l.end.Cause() != nil })
	j.lease.engine.recovered(func() { _ = releaseTogether(context.Background(), others, script.HeldByCaller) })
}

// endIfOver ends the multi-lease if one of its members is over by the clock. memberEnded does the rest.
func (j *multiLease) endIfOver() {
	for _, m := range j.members {
		keptLease{m}.EndIfOver()
		if cause := m.end.Cause(); cause != nil {
			j.lease.end.Set(cause)
		}
	}
}

// abandon ends the multi-lease and leaves its members to expire.
func (j *multiLease) abandon() {
	if j.over.CompareAndSwap(false, true) {
		j.lease.end.Set(errAbandoned)
		j.leaveToExpire(errAbandoned)
	}
}

// leaveToExpire ends all members that are still held, without releasing them.
func (j *multiLease) leaveToExpire(cause error) {
	for _, l := range j.members {
		l.leaveToExpire(cause)
	}
}

// release ends the multi-lease and releases its members, unless it has ended.
func (j *multiLease) release(ctx context.Context, what script.ReleaseReason) error {
	if !j.over.CompareAndSwap(false, true) {
		if leftToExpire(j.lease.end.Cause()) {
			_ = releaseTogether(ctx, j.members, what) // the holder has stopped before the TTL is over
		}
		return j.lease.notHeld()
	}
	for _, stop := range j.stops {
		stop()
	}
	j.lease.end.Set(ErrNotHeld)
	return releaseTogether(ctx, j.members, what)
}

// releaseTogether releases leases concurrently, in one batch.
func releaseTogether(ctx context.Context, leases []*Lease, what script.ReleaseReason) error {
	return primaryError(transport.DoGrouped(ctx, len(leases), func(ctx context.Context, i int) error {
		return leases[i].release(ctx, what)
	}))
}

func (j *multiLease) extend(ctx context.Context, ttl time.Duration) error {
	err := primaryError(transport.DoGrouped(ctx, len(j.members), func(ctx context.Context, i int) error {
		return j.members[i].Extend(ctx, ttl)
	}))
	if errors.Is(err, ErrNotHeld) {
		<-j.lease.Done() // the end of a member is on its way
	}
	return err
}

func (j *multiLease) validUntil() time.Time {
	var earliest time.Time
	for i, m := range j.members {
		if until := m.ValidUntil(); i == 0 || until.Before(earliest) {
			earliest = until
		}
	}
	return earliest
}

// primaryError returns the first error that is ErrNotHeld, or else the first error.
func primaryError(errs []error) error {
	var first error
	for _, err := range errs {
		if errors.Is(err, ErrNotHeld) {
			return err
		}
		first = cmp.Or(first, err)
	}
	return first
}

// raise gives all leases the greatest of their tokens in Redis and returns it. So the work under all of them has one
// token, which every later grant of any of them exceeds. It fails with a [memberLost] if one of them is over.
func raise(ctx context.Context, leases []*Lease, patience time.Duration) (int64, error) {
	var token int64
	for _, l := range leases {
		token = max(token, l.token)
	}
	var smaller []*Lease
	for _, l := range leases {
		if l.token < token {
			smaller = append(smaller, l)
		}
	}
	errs := transport.DoGrouped(ctx, len(smaller), func(ctx context.Context, i int) error {
		return smaller[i].raise(ctx, token, patience)
	})
	if err := cmp.Or(errs...); err != nil {
		return 0, err
	}
	return token, nil
}

// raise waits with patience for a slot that moves.
func (l *Lease) raise(ctx context.Context, token int64, patience time.Duration) error {
	var held bool
	err := transport.Retry(ctx, patience, transport.SlotMigrating, func() error {
		return transport.RetryUntilAnswered(ctx, func(ctx context.Context) (err error) {
			held, err = l.strategy.Raise(ctx, &l.hold, token)
			return err
		})
	})
	switch {
	case err != nil:
		return errorf("holdfast: lock %q: %w", l.hold.Name, failure(ctx, l.hold.Keys.Lock, err))
	case !held:
		if l.engine.renewer.Remove(&l.entry) {
			l.engine.lost(l, errTaken)
		}
		return &memberLost{name: l.hold.Name, cause: errTaken}
	}
	l.raised = true
	l.engine.renewer.Raised(&l.entry, token)
	return nil
}
