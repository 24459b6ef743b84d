package core

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"
)

// joint is the lease of several locks: it is over when one of theirs is. Each of those is renewed, and told of, by
// itself.
type joint struct {
	lease   *Lease
	members []*Lease
	stops   []func() bool // of watching them
	over    atomic.Bool   // decides between Unlock and the first loss
}

// newJoint makes one lease of several. Its context has the values of ctx and what the members' contexts have, so
// that each of them is entered again with it.
func newJoint(ctx context.Context, name string, members []*Lease, token int64) *Lease {
	j := &joint{members: members}
	first := members[0].leaves()[0]
	j.lease = &Lease{keeper: first.keeper, token: token, granted: first.granted, joint: j, index: -1}
	j.lease.hold = hold{name: name, lockConfig: lockConfig{owner: first.hold.owner}}
	var keys []string
	for _, l := range j.lease.leaves() {
		keys = append(keys, l.hold.keys.lock)
		j.lease.hold.ttl = max(j.lease.hold.ttl, l.hold.ttl)
	}
	j.lease.hold.keys.lock = strings.Join(keys, "+")
	within := j.lease.within(context.WithoutCancel(ctx))
	j.lease.bare = bare{*holdingFrom(within), within}
	for _, m := range members {
		j.stops = append(j.stops, context.AfterFunc(m.Context(), func() { j.ended(m) }))
	}
	return j.lease
}

// leaves returns the leases of single locks that make up this one.
func (l *Lease) leaves() []*Lease {
	if l.joint == nil {
		return []*Lease{l}
	}
	var leaves []*Lease
	for _, m := range l.joint.members {
		leaves = append(leaves, m.leaves()...)
	}
	return leaves
}

// within returns ctx with all that the lease holds.
func (l *Lease) within(ctx context.Context) context.Context {
	if l.joint == nil {
		return withHolding(ctx, l, nil, l.token)
	}
	for _, leaf := range l.leaves() {
		ctx = withHolding(ctx, leaf, l, l.token)
	}
	return ctx
}

// ended ends the whole because a member has ended by itself, and lets go of the others, on a goroutine of the
// client. If that one is left to run out, so are the others.
func (j *joint) ended(m *Lease) {
	if !j.over.CompareAndSwap(false, true) {
		return
	}
	cause := m.ending.cause()
	j.lease.ending.come(cause)
	if runsOut(cause) {
		j.runOut(cause)
		return
	}
	var others []*Lease
	for _, l := range j.members {
		if l.ending.cause() == nil {
			others = append(others, l)
		}
	}
	j.lease.keeper.recovered(func() { _ = releaseTogether(context.Background(), others, heldByCaller) })
}

// abandon ends the whole and leaves it to run out.
func (j *joint) abandon() {
	if j.over.CompareAndSwap(false, true) {
		j.lease.ending.come(errAbandoned)
		j.runOut(errAbandoned)
	}
}

// runOut lets go of all that are still held, without freeing them.
func (j *joint) runOut(cause error) {
	for _, l := range j.lease.leaves() {
		if l.keeper.renewer.remove(l) {
			l.keeper.lost(l, cause)
		}
	}
}

// release ends the whole for the one who asks first.
func (j *joint) release(ctx context.Context, what releaseReason) error {
	if !j.over.CompareAndSwap(false, true) {
		if runsOut(j.lease.ending.cause()) {
			_ = releaseTogether(ctx, j.members, what) // the holder has stopped before the TTL is over
		}
		return j.lease.notHeld()
	}
	for _, stop := range j.stops {
		stop()
	}
	j.lease.ending.come(ErrNotHeld)
	return releaseTogether(ctx, j.members, what)
}

// releaseTogether ends leases side by side.
func releaseTogether(ctx context.Context, leases []*Lease, what releaseReason) error {
	return worst(doGrouped(ctx, len(leases), func(ctx context.Context, i int) error {
		return leases[i].release(ctx, what)
	}))
}

func (j *joint) extend(ctx context.Context, ttl time.Duration) error {
	err := worst(doGrouped(ctx, len(j.members), func(ctx context.Context, i int) error {
		return j.members[i].Extend(ctx, ttl)
	}))
	if errors.Is(err, ErrNotHeld) {
		<-j.lease.Done() // the end of a member is on its way
	}
	return err
}

func (j *joint) validUntil() time.Time {
	var earliest time.Time
	for i, m := range j.members {
		if until := m.ValidUntil(); i == 0 || until.Before(earliest) {
			earliest = until
		}
	}
	return earliest
}

// worst returns the first error, but one that says that a lease was over before any other.
func worst(errs []error) error {
	var first error
	for _, err := range errs {
		if errors.Is(err, ErrNotHeld) {
			return err
		}
		if first == nil {
			first = err
		}
	}
	return first
}
