package core

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
	"github.com/holdfast-go/holdfast/internal/seal"
)

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
	l.engine.renewer.Raised(&l.entry, token)
	return nil
}
