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

// tryBatch requests all mutexes in one script, once.
func (g *multiAcquire) tryBatch() (combined *Lease, err error) {
	members := g.multi.batch
	e := members[0].engine
	if !e.operations.Start() {
		return nil, ErrClosed
	}
	defer e.operations.Finish()
	a, all := g.newAcquisition()
	handed := false
	defer func() {
		if a.lease != nil && !handed { // a hook panics: no caller gets the lease
			_ = a.lease.release(g.caller, script.NeverHeld)
		}
	}()
	combined, err = g.runBatch(a, all)
	handed = true
	return combined, err
}

// runBatch sends the request between the hooks of its members.
func (g *multiAcquire) runBatch(a *acquisition, all script.MutexBatch) (combined *Lease, err error) {
	e := a.engine
	began := e.now()
	g.ctxs, err = make([]context.Context, 0, len(all.Holds)), errHookPanics
	defer func() { g.membersEnd(a, all.MemberHolds(&a.Hold), began, err) }()
	for _, h := range all.MemberHolds(&a.Hold) {
		g.ctxs = append(g.ctxs, e.acquireStarts(g.caller, all, &h, true))
	}
	return a.run(g.caller)
}

// membersEnd calls the hook of each member whose call has started, in order. A panic of a hook does not keep it from the
// members after: they count their calls.
func (g *multiAcquire) membersEnd(a *acquisition, holds []script.Hold, began keepalive.Instant, err error) {
	for i := range slices.Backward(g.ctxs) {
		defer a.acquireEnds(g.ctxs[i], &holds[i], a.parentOf(i, &holds[i]), a.grant.Token, began, err)
	}
}

// newAcquisition prepares the request for all of them. They are of one new owner, except those of which the caller holds
// the lease already, or has named the owner.
func (g *multiAcquire) newAcquisition() (*acquisition, script.MutexBatch) {
	first := g.multi.batch[0]
	all := script.NewMutexBatch(first.abilities.Batch, len(g.multi.batch))
	a := &acquisition{engine: first.engine}
	a.Env, a.Caller, a.SingleTry = &first.engine.acquiring, a, true
	var configs []lockConfig
	for i, l := range g.multi.batch {
		one := l.newAcquisition(g.caller, l.config.with(g.opts))
		h := &all.Holds[i]
		if *h = one.Hold; h.Owner == h.ID {
			h.Owner = ""
		}
		for _, r := range one.Reentries {
			a.Reentries, a.Reenters = append(a.Reentries, acquire.Reentry{Hold: h, Parent: r.Parent}), true
		}
		a.parents, configs = append(a.parents, one.parent[0]), append(configs, one.config)
		a.Hold.TTL, a.Hold.MinHold = max(a.Hold.TTL, h.TTL), max(a.Hold.MinHold, h.MinHold)
		a.Hold.Ack = a.Hold.Ack.And(h.Ack)
	}
	a.Hold.Name, a.Hold.Keys = g.multi.name, all.Holds[0].Keys
	first.engine.ids.Renew(&a.Hold)
	a.Hold.Owner = a.Hold.ID
	if !g.try {
		a.Wait = -1
		if !g.deadline.IsZero() {
			a.Wait = max(time.Until(g.deadline), 0)
		}
	}
	a.Strategy, a.makeLease = all, func(_ context.Context, h script.Hold, granted acquire.Grant) (*Lease, error) {
		return g.newLeases(a, all, configs, &h, granted)
	}
	return a, all
}

// newLeases makes a lease for each, and one of them all.
func (g *multiAcquire) newLeases(a *acquisition, m script.MutexBatch, configs []lockConfig, h *script.Hold, granted acquire.Grant) (*Lease, error) {
	e := a.engine
	var leases []*Lease
	for i, o := range m.MemberHolds(h) {
		granted.TTL = o.TTL
		l, err := e.newLease(g.ctxs[i], m.Mutex, o, grant{granted, &configs[i], a.parentOf(i, &o).entered(e, granted.Token)})
		if err != nil { // too late: the request gives all holds up
			for _, l := range leases {
				e.renewer.Remove(&l.entry)
				l.end.Set(acquire.ErrTooLate) // so that no outer lease refers to it
			}
			return nil, err
		}
		leases = append(leases, l)
	}
	return newMultiLease(g.caller, g.multi.name, leases, granted.Token), nil
}
