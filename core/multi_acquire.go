package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/acquire"
	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// multiAcquire is one call of Lock or TryLock of a Multi.
type multiAcquire struct {
	multi    *multiLock
	caller   context.Context // its end is an error of the call
	try      bool            // ask for each once
	opts     []LockOption
	deadline time.Time // by WithWait; zero if it does not
}

// memberLost is the error of a Multi of which one member was lost before all were acquired.
type memberLost struct {
	name  string
	cause error
}

func (e *memberLost) Error() string { return fmt.Sprintf("holdfast: lock %q: %v", e.name, e.cause) }

// run acquires the members until there is a lease or a reason to stop. The context that it derives ends with the context of the
// caller and with the time of WithWait. Errors are built from the caller's context only: the end of WithWait is no error
// of a context.
func (g *multiAcquire) run(wait time.Duration) (*Lease, error) {
	ctx, cancel := g.caller, context.CancelFunc(func() {})
	if wait > 0 {
		g.deadline = time.Now().Add(wait)
		ctx, cancel = context.WithDeadline(g.caller, g.deadline)
	}
	defer cancel()
	for {
		lease, err := g.acquireAll(ctx)
		var lost *memberLost
		switch {
		case err == nil:
			return lease, nil
		case !errors.As(err, &lost):
			return nil, g.refusal(ctx, err)
		case errors.Is(lost.cause, ErrClosed):
			return nil, ErrClosed
		case g.try || ctx.Err() != nil:
			return nil, &NotAcquiredError{Name: lost.name, cause: errors.Join(ended(g.caller), lost.cause)}
		}
		keepalive.Pause(ctx, transport.FirstRetryInterval, nil, nil) // should they always be lost, no busy loop
	}
}

// refusal is the error of a call that err has ended, or the end of the caller's context meanwhile. An outage that
// lasted until the time was up is a refusal too, as it is for a single lock.
func (g *multiAcquire) refusal(ctx context.Context, err error) error {
	var busy *NotAcquiredError
	switch cause := ended(g.caller); {
	case ctx.Err() == nil:
		return err
	case errors.As(err, &busy):
		if cause == nil || errors.Is(err, g.caller.Err()) {
			return err
		}
		return busy.with(errors.Join(busy.cause, cause))
	case errors.Is(err, ErrUnavailable):
		return &NotAcquiredError{Name: g.multi.name, cause: errors.Join(cause, err)}
	}
	return err
}

func (g *multiAcquire) acquireAll(ctx context.Context) (*Lease, error) {
	var busy *NotAcquiredError
	if g.multi.batch != nil && (g.try || g.noLocalWaiters()) {
		lease, err := g.tryBatch()
		switch {
		case errors.Is(err, ErrWrongType), errors.Is(err, script.ErrOtherStrategy), transport.CrossSlot(err):
			// The failed member alone returns a more precise error.
		case g.try, err == nil, ctx.Err() != nil, errors.Is(err, ErrUnavailable), !errors.As(err, &busy):
			return lease, err
		}
	}
	answeredAt := time.Now()
	members, err := g.multi.order(ctx)
	if err != nil {
		return nil, err
	}
	lease, err := g.lockSequentially(ctx, members)
	if busy != nil && time.Since(answeredAt) < transport.StallTimeout && errors.Is(err, ErrNotAcquired) && errors.Is(err, ErrUnavailable) {
		// The time was up before the next answer. That is no outage: there was one just now.
		err = busy.with(ended(g.caller))
	}
	return lease, err
}

// lockSequentially locks one member after the other, in the order of members.
func (g *multiAcquire) lockSequentially(ctx context.Context, members []member) (combined *Lease, err error) {
	turn, cut := context.WithCancelCause(g.caller)
	defer cut(nil)
	var held []*Lease
	defer func() {
		if combined == nil { // or there is a panic in a hook
			releaseMembers(ctx, held)
		}
	}()
	for _, m := range members {
		lease, err := g.lockMember(turn, m)
		if err != nil {
			return nil, cmp.Or(g.lostMember(held), err)
		}
		held = append(held, lease)
		defer lease.end.Bind(cut)()
	}
	patience := transport.NoLimit
	if g.try {
		patience = 0
	}
	token, err := raise(ctx, held, patience)
	if err := cmp.Or(g.lostMember(held), err); err != nil {
		return nil, err
	}
	return newMultiLease(g.caller, g.multi.name, held, token), nil
}

// lockMember locks the next member.
func (g *multiAcquire) lockMember(ctx context.Context, m member) (*Lease, error) {
	switch left := time.Until(g.deadline); {
	case g.try:
		return m.acquire(ctx, true, g.opts)
	case g.deadline.IsZero():
		return m.acquire(ctx, false, g.opts)
	case left <= 0:
		return nil, &NotAcquiredError{Name: m.name}
	default:
		return m.acquire(ctx, false, append(slices.Clip(g.opts), WithWait(max(left, leastLimit))))
	}
}

// lostMember returns a [memberLost] if one of these leases has ended by itself, nil otherwise.
func (g *multiAcquire) lostMember(held []*Lease) error {
	for _, l := range held {
		if l.end.Cause() != nil {
			return &memberLost{name: l.Name(), cause: l.end.Cause()}
		}
	}
	return nil
}

// releaseMembers releases the members of a Multi that was not acquired. It waits for the releases; if ctx ends, only for
// transport.ReleaseGrace.
func releaseMembers(ctx context.Context, held []*Lease) {
	if len(held) == 0 {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		held[0].engine.recovered(func() { _ = releaseTogether(context.WithoutCancel(ctx), held, script.NeverHeld) })
	}()
	select {
	case <-done:
	case <-ctx.Done():
		keepalive.Pause(context.Background(), transport.ReleaseGrace, done, nil)
	}
}

// maxBatchedMutexes bounds how many mutexes one script grants: while it runs, the server does nothing else.
const maxBatchedMutexes = 64

// batchable returns the members if one script can grant them all: mutexes of one client in one slot. It returns nil otherwise.
func (m *multiLock) batchable() []*singleLock {
	if len(m.members) > maxBatchedMutexes {
		return nil
	}
	var mutexes []*singleLock
	var keys []string
	var on *script.Instance
	for _, member := range m.members {
		batch := member.abilities.Batch
		if batch == nil || on != nil && batch != on {
			return nil
		}
		on = batch
		mutexes, keys = append(mutexes, member.singleLock), append(keys, member.key)
	}
	if !transport.SameSlot(on.Exec.Client, keys) {
		return nil
	}
	return mutexes
}

// noLocalWaiters reports whether no caller of this process waits for one of the mutexes. Such a caller would come first.
func (g *multiAcquire) noLocalWaiters() bool {
	for _, l := range g.multi.batch {
		if !l.engine.acquiring.Lists.Empty(l.engine.prefix + l.name) {
			return false
		}
	}
	return true
}

// batchAcquisition is the acquisition of all mutexes of a Multi by one script.
type batchAcquisition struct {
	acquisition
	call    *multiAcquire
	mutexes script.MutexBatch
	configs []lockConfig      // of the mutexes
	ctxs    []context.Context // of the mutexes' hooks
}

// tryBatch requests all mutexes in one script, once.
func (g *multiAcquire) tryBatch() (combined *Lease, err error) {
	e := g.multi.batch[0].engine
	if !e.operations.Start() {
		return nil, ErrClosed
	}
	defer e.operations.Finish()
	b := g.newBatchAcquisition()
	handed := false
	defer func() {
		if b.lease != nil && !handed { // a hook panics: no caller gets the lease
			_ = b.lease.release(g.caller, script.NeverHeld)
		}
	}()
	combined, err = b.runWithHooks()
	handed = true
	return combined, err
}

// runWithHooks sends the request between the hooks of its members.
func (b *batchAcquisition) runWithHooks() (combined *Lease, err error) {
	e, ctx := b.engine, b.call.caller
	began := e.now()
	err = errHookPanics
	defer func() { b.membersEnd(b.mutexes.MemberHolds(&b.Hold), began, err) }()
	for _, h := range b.mutexes.MemberHolds(&b.Hold) {
		b.ctxs = append(b.ctxs, e.acquireStarts(ctx, b.Strategy, &h, true))
	}
	return b.run(ctx)
}

// membersEnd calls the hook of each member whose call has started, in order. A panic of a hook does not keep it from the
// members after: they count their calls.
func (b *batchAcquisition) membersEnd(holds []script.Hold, began keepalive.Instant, err error) {
	for i := range slices.Backward(b.ctxs) {
		defer b.acquireEnds(b.ctxs[i], &holds[i], b.parentOf(i, &holds[i]), b.grant.Token, began, err)
	}
}

// newBatchAcquisition prepares the request for all of them. They have one new owner, except for members of which the caller holds
// the lease already, or has named the owner.
func (g *multiAcquire) newBatchAcquisition() *batchAcquisition {
	first := g.multi.batch[0]
	b := &batchAcquisition{call: g, mutexes: script.NewMutexBatch(first.abilities.Batch, len(g.multi.batch))}
	b.engine, b.Env, b.Strategy, b.Caller, b.SingleTry = first.engine, &first.engine.acquiring, b.mutexes, b, true
	for i, l := range g.multi.batch {
		one := l.newAcquisition(g.caller, l.config.with(g.opts))
		h := &b.mutexes.Holds[i]
		if *h = one.Hold; h.Owner == h.ID {
			h.Owner = ""
		}
		for _, r := range one.Reentries {
			b.Reentries, b.Reenters = append(b.Reentries, acquire.Reentry{Hold: h, Parent: r.Parent}), true
		}
		b.parents, b.configs = append(b.parents, one.parent[0]), append(b.configs, one.config)
		b.Hold.TTL, b.Hold.MinHold = max(b.Hold.TTL, h.TTL), max(b.Hold.MinHold, h.MinHold)
		b.Hold.Ack = b.Hold.Ack.And(h.Ack)
	}
	b.Hold.Name, b.Hold.Keys = g.multi.name, b.mutexes.Holds[0].Keys
	b.engine.ids.Renew(&b.Hold)
	b.Hold.Owner = b.Hold.ID
	if !g.try {
		b.Wait = -1
		if !g.deadline.IsZero() {
			b.Wait = max(time.Until(g.deadline), 0)
		}
	}
	return b
}

// Accept implements acquire.Caller: it makes a lease for each mutex, and one of them all.
func (b *batchAcquisition) Accept(_ context.Context, h *script.Hold, g script.Grant) error {
	e := b.engine
	var leases []*Lease
	for i, member := range b.mutexes.MemberHolds(h) {
		g.TTL = member.TTL
		l, err := e.newLease(b.ctxs[i], b.mutexes.Mutex, member, g, &b.configs[i], b.parentOf(i, &member).entered(e, g.Token))
		if err != nil { // too late: the request gives all holds up
			for _, l := range leases {
				e.renewer.Remove(&l.entry)
				l.end.Set(acquire.ErrTooLate) // so that no outer lease refers to it
			}
			return err
		}
		leases = append(leases, l)
	}
	g.TTL = h.TTL
	b.lease, b.grant = newMultiLease(b.call.caller, b.call.multi.name, leases, g.Token), g
	return nil
}
