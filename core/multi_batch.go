package core

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/lockscript"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// maxBatchedMutexes bounds how many mutexes one script grants: while it runs, the server does nothing else.
const maxBatchedMutexes = 64

// batchable returns the members if one script can grant them all: mutexes of one client in one slot. It returns nil otherwise.
func (m *multi) batchable() []*locker {
	if len(m.members) > maxBatchedMutexes {
		return nil
	}
	var mutexes []*locker
	var keys []string
	var on *lockscript.Instance
	for _, member := range m.members {
		if member.own == nil {
			return nil
		}
		p, ok := member.own.protocol.(lockscript.Mutex)
		if !ok || on != nil && p.Instance != on {
			return nil
		}
		on = p.Instance
		mutexes, keys = append(mutexes, member.own), append(keys, member.key)
	}
	if !transport.SameSlot(on.Exec.Client, keys) {
		return nil
	}
	return mutexes
}

// noLocalWaiters reports whether no caller of this process waits for one of the mutexes. Such a caller would come first.
func (g *multiAcquire) noLocalWaiters() bool {
	for _, l := range g.multi.batch {
		if !l.keeper.waitLists.Empty(l.keeper.prefix + l.name) {
			return false
		}
	}
	return true
}

// tryBatch requests all mutexes in one script, once.
func (g *multiAcquire) tryBatch() (combined *Lease, err error) {
	members := g.multi.batch
	k := members[0].keeper
	if !k.operations.Start() {
		return nil, ErrClosed
	}
	defer k.operations.Finish()
	r, all := g.newAcquisition()
	began, ctxs := k.now(), make([]context.Context, len(members))
	for i, h := range all.MemberHolds(&r.hold) {
		ctxs[i] = k.hooks.acquireStart(g.caller, AcquireStart{Name: h.Name, Owner: h.Owner, Try: true})
	}
	combined, err = r.run(g.caller)
	handed := false
	defer func() {
		if combined != nil && !handed { // a hook panics: no caller gets the lease
			_ = combined.release(g.caller, lockscript.NeverHeld)
		}
	}()
	for i, h := range all.MemberHolds(&r.hold) {
		end := AcquireEnd{Name: h.Name, Owner: h.Owner, Waited: k.now().Sub(began), Asked: r.requests, Err: err}
		if combined != nil {
			end.Token = combined.token
		}
		k.hooks.acquireEnd(ctxs[i], end)
	}
	handed = true
	return combined, err
}

// newAcquisition prepares the request for all of them. They are of one new owner, except those of which the caller holds
// the lease already, or has named the owner.
func (g *multiAcquire) newAcquisition() (*acquisition, lockscript.MutexBatch) {
	first := g.multi.batch[0]
	all := lockscript.MutexBatch{Mutex: first.protocol.(lockscript.Mutex)}
	r := &acquisition{keeper: first.keeper, singleTry: true}
	var configs []lockConfig
	for _, l := range g.multi.batch {
		one := l.newAcquisition(g.caller, l.config.with(g.opts))
		h := one.hold
		if h.Owner == h.ID {
			h.Owner = ""
		}
		r.entered = r.entered || h.ParentID != ""
		r.parents = append(r.parents, one.parent[0])
		all.Holds, configs = append(all.Holds, h), append(configs, one.config)
		r.hold.TTL, r.hold.MinHold = max(r.hold.TTL, h.TTL), max(r.hold.MinHold, h.MinHold)
		r.hold.Ack = r.hold.Ack.And(h.Ack)
	}
	r.hold.Name, r.hold.Keys = g.multi.name, all.Holds[0].Keys
	first.keeper.ids.Renew(&r.hold)
	r.hold.Owner = r.hold.ID
	if !g.try {
		r.config.wait = -1
		if !g.deadline.IsZero() {
			r.config.wait = max(time.Until(g.deadline), 0)
		}
	}
	r.protocol, r.makeLease = all, func(ctx context.Context, h lockscript.Hold, token int64, sentAt clock.Instant) (*Lease, error) {
		return g.newLeases(ctx, all, configs, &h, token, sentAt)
	}
	return r, all
}

// newLeases makes a lease for each, and one of them all.
func (g *multiAcquire) newLeases(ctx context.Context, m lockscript.MutexBatch, configs []lockConfig, h *lockscript.Hold, token int64, sentAt clock.Instant) (*Lease, error) {
	k := g.multi.batch[0].keeper
	var leases []*Lease
	for i, o := range m.MemberHolds(h) {
		l, err := k.newLease(ctx, m.Mutex, o, grant{token, sentAt, o.TTL, configs[i].fixed, configs[i].maxHold})
		if err != nil { // too late: the request gives all holds up
			for _, l := range leases {
				k.renewer.Remove(&l.entry)
			}
			return nil, err
		}
		leases = append(leases, l)
	}
	return newMultiLease(g.caller, g.multi.name, leases, token), nil
}
