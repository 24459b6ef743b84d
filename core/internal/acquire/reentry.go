package acquire

import (
	"context"
	"slices"

	"github.com/holdfast-go/holdfast/core/internal/script"
)

// Reentry is a hold of the request that enters the lock under a lease of the same owner.
type Reentry struct {
	Hold   *script.Hold // that of the acquisition, or one of its batch
	Parent interface {
		// Ended returns true if the lease has ended.
		Ended() bool
	}
}

// leaveForeignParent makes a request a new owner that Redis has refused although it has a parent. The request took no place in
// the queue. Why: a re-entry into a semaphore never has to wait, so Redis does not know the parent, which lies in another
// Redis. As the parent's owner, all callers with its context would share the permits of one.
func (a *Acquisition) leaveForeignParent(ctx context.Context) {
	a.ForeignParent = false
	a.dropParents(ctx, func(Reentry) bool { return true })
}

// dropParents makes a re-entry a new owner if drops is true for its parent. With hasEnded it must be called before each request,
// because the lease may end while the acquisition waits. Why:
//
//  1. The lease of A ends, for instance at its MaxHold. Redis keeps its hold until the TTL expires.
//  2. Callers B and C still have the context of that lease, and lock the same name. Both ask as the owner of A.
//  3. Redis would grant both a re-entry, and they would be in the lock together.
//
// As new owners, B and C exclude each other. If Redis knows of the end before the client, the scripts refuse the owner by
// the ID of the parent, see script/lua/lock/mutex_common.lua. If an earlier request is uncertain or queued, its hold is
// replaced first, because it belongs to the old owner.
func (a *Acquisition) dropParents(ctx context.Context, drops func(Reentry) bool) {
	if !slices.ContainsFunc(a.Reentries, drops) {
		return
	}
	if a.uncertain || a.queued {
		a.replaceHold(ctx, a.LastErr)
	}
	a.Reentries = slices.DeleteFunc(a.Reentries, func(r Reentry) bool {
		if !drops(r) {
			return false
		}
		r.Hold.Owner, r.Hold.ParentID = "", "" // a member of a batch without an owner gets that of the batch
		if r.Hold == &a.Hold {
			r.Hold.Owner = r.Hold.ID
		}
		return true
	})
	if a.call != nil {
		a.Env.Calls.update(a.call, a.Hold.Owner, a.call.Place)
	}
}

// hasEnded returns true if the lease of a re-entry has ended.
func hasEnded(r Reentry) bool { return r.Parent.Ended() }
