package core

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
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
	var on *server
	for _, member := range m.members {
		if member.own == nil {
			return nil
		}
		p, ok := member.own.protocol.(mutex)
		if !ok || on != nil && p.server != on {
			return nil
		}
		on = p.server
		mutexes, keys = append(mutexes, member.own), append(keys, member.key)
	}
	if !transport.SameSlot(on.exec.Client, keys) {
		return nil
	}
	return mutexes
}

// mutexBatch is the protocol of several mutexes that one script grants, all or none. Its hold stands for one hold of each
// mutex, with the same id. Each mutex has a lease of its own.
type mutexBatch struct {
	mutex
	holds []hold // without id; without owner, if that is not yet in any of them
}

// memberHolds returns the holds for which h stands.
func (m mutexBatch) memberHolds(h *hold) []hold {
	holds := slices.Clone(m.holds)
	for i := range holds {
		holds[i].setID(h.id)
		holds[i].unanswered = h.unanswered
		if holds[i].owner == "" {
			holds[i].owner = h.owner
		}
	}
	return holds
}

func (m mutexBatch) acquire(ctx context.Context, h *hold) (acquireResult, error) {
	holds := m.memberHolds(h)
	keys := make([]string, 0, 3*len(holds))
	args := []any{h.id, milliseconds(tokenMemory)}
	for _, o := range holds {
		keys = append(keys, o.keys.lock, o.keys.token, o.released)
		args = append(args, o.owner, milliseconds(o.ttl), milliseconds(o.minHold), o.parentID())
	}
	reply, err := h.do(ctx, m.server.exec, acquireAllScript, keys, args...)
	if err != nil {
		return acquireResult{}, err
	}
	list, err := integers(reply, 3)
	if err != nil {
		return acquireResult{}, err
	}
	switch status, value, which := list[0], list[1], list[2]; status {
	case 1:
		return acquireResult{granted: true, token: value}, nil
	case 0:
		h.name = holds[which-1].name // who refuses, for the error
		return acquireResult{waitState: waitState{holderTTL: time.Duration(value) * time.Millisecond}}, nil
	case -2:
		return acquireResult{}, errOtherStrategy
	default:
		return acquireResult{holdReleased: true}, nil
	}
}

func (m mutexBatch) bar(h *hold) {
	var released []string
	for _, o := range m.memberHolds(h) {
		released = append(released, o.released)
	}
	m.barAll(h.keys.lock, released...)
}

func (m mutexBatch) release(ctx context.Context, h *hold, what releaseReason) (bool, error) {
	holds := m.memberHolds(h)
	held := make([]bool, len(holds))
	errs := transport.DoGrouped(ctx, len(holds), func(ctx context.Context, i int) (err error) {
		held[i], err = m.mutex.release(ctx, &holds[i], what)
		return err
	})
	return !slices.Contains(held, false), primaryError(errs)
}

// noLocalWaiters reports whether no caller of this process waits for one of the mutexes. Such a caller would come first.
func (g *multiAcquire) noLocalWaiters() bool {
	for _, l := range g.multi.batch {
		if !l.keeper.waitLists.empty(l.keeper.prefix + l.name) {
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
	for i, h := range all.memberHolds(&r.hold) {
		ctxs[i] = k.hooks.acquireStart(g.caller, AcquireStart{Name: h.name, Owner: h.owner, Try: true})
	}
	combined, err = r.run(g.caller)
	handed := false
	defer func() {
		if combined != nil && !handed { // a hook panics: nobody gets the lease
			_ = combined.release(g.caller, neverHeld)
		}
	}()
	for i, h := range all.memberHolds(&r.hold) {
		end := AcquireEnd{Name: h.name, Owner: h.owner, Waited: k.now().Sub(began), Asked: r.requests, Err: err}
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
func (g *multiAcquire) newAcquisition() (*acquisition, mutexBatch) {
	first := g.multi.batch[0]
	all := mutexBatch{mutex: first.protocol.(mutex)}
	r := &acquisition{keeper: first.keeper, singleTry: true}
	for _, l := range g.multi.batch {
		h := l.newAcquisition(g.caller, l.config.with(g.opts)).hold
		if h.owner == h.id {
			h.owner = ""
		}
		r.entered = r.entered || h.parent != nil
		all.holds = append(all.holds, h)
		r.hold.ttl, r.hold.minHold = max(r.hold.ttl, h.ttl), max(r.hold.minHold, h.minHold)
		r.hold.ack = r.hold.ack.And(h.ack)
	}
	r.hold.name, r.hold.keys = g.multi.name, all.holds[0].keys
	first.keeper.renewID(&r.hold)
	r.hold.owner = r.hold.id
	if !g.try {
		r.hold.wait = -1
		if !g.deadline.IsZero() {
			r.hold.wait = max(time.Until(g.deadline), 0)
		}
	}
	r.protocol, r.makeLease = all, func(ctx context.Context, h hold, token int64, sentAt clock.Instant) (*Lease, error) {
		return all.newLeases(ctx, g, &h, token, sentAt)
	}
	return r, all
}

// newLeases makes a lease for each, and one of them all.
func (m mutexBatch) newLeases(ctx context.Context, g *multiAcquire, h *hold, token int64, sentAt clock.Instant) (*Lease, error) {
	var leases []*Lease
	for _, o := range m.memberHolds(h) {
		l, err := m.server.keeper.newLease(ctx, m.mutex, o, grant{token, sentAt, o.ttl})
		if err != nil { // too late: the request gives all holds up
			for _, l := range leases {
				m.server.keeper.renewer.Remove(&l.entry)
			}
			return nil, err
		}
		leases = append(leases, l)
	}
	return newMultiLease(g.caller, g.multi.name, leases, token), nil
}
