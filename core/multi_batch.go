package core

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/acquire"
	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

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

// newBatchAcquisition prepares the request for all of them. They are of one new owner, except those of which the caller holds
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
