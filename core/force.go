package core

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/core/internal/script"
)

// ForceUnlock takes the lock of that name from its holders, of whatever strategy. It returns true if the lock was held. It
// takes the lock from whoever holds it when Redis runs the command, also from a holder that has got it since an operator
// looked: if a person decides, use [Client.ForceUnlockSeen]. It does not stop a holder. The holder notices at its next renewal,
// a third of its TTL later at most, and may overlap with its successor until then. So may callers to which its process hands the
// lock over, see [Client.Mutex]. The successor's fencing token is greater, so a resource that checks tokens is safe.
//
// It refuses data of another program at the key of the lock with [ErrWrongType], as all operations do.
func (c *Client) ForceUnlock(ctx context.Context, name string) (bool, error) {
	forced := false
	err := c.operateOn(ctx, "force lock", name, func(k script.Keys) (err error) {
		forced, _, err = c.server.Force(ctx, k, c.ids.Next(), nil)
		return err
	})
	return forced, err
}

// ForceUnlockSeen is [Client.ForceUnlock] that applies to what was seen, as [Client.Inspect] returned it: it takes the lock
// only if each of its holders is one of seen.Holders, with the same Owner and Token. Otherwise it returns [ErrChanged], and
// nothing is changed. A holder that has left meanwhile does no harm. It returns false if the lock is free. Fields other than
// Name and Holders are ignored.
//
// The 1,000 holders that Inspect returns at most are compared. A lock that more owners share is not taken: use
// [Client.ForceUnlockHolder], or ForceUnlock. A Redisson client has no token, so its later hold cannot be distinguished
// from the one that was seen if it has the same owner.
func (c *Client) ForceUnlockSeen(ctx context.Context, seen Info) (bool, error) {
	k, err := keysOf(c.prefix, seen.Name)
	if err != nil {
		return false, err
	}
	if n := max(seen.Shares, len(seen.Holders)); n > maxInspected {
		return false, invalidOption("force lock %q: %d holds are more than the %d that can be compared: use ForceUnlockHolder or ForceUnlock",
			seen.Name, n, maxInspected)
	}
	holders := make([]script.Holder, len(seen.Holders))
	for i, h := range seen.Holders {
		holders[i] = script.Holder{Owner: h.Owner, Token: h.Token}
	}
	forced, changed := false, false
	err = c.operate(ctx, "force lock", seen.Name, k, func() (err error) {
		forced, changed, err = c.server.Force(ctx, k, c.ids.Next(), holders)
		return err
	})
	if changed {
		return false, errorf("holdfast: force lock %q: %w: another owner holds it: inspect it again", seen.Name, ErrChanged)
	}
	return forced, err
}

// ForceUnlockHolder takes the lock of that name from one of its owners, with all of the owner's holds: from the one with
// the Owner and the Token of holder, as [Client.Inspect] returns it. It returns true if that owner held the lock. One of
// both may be empty; other fields are ignored. Waiters are granted what becomes free. Otherwise it is
// [Client.ForceUnlock].
//
// With a Token it never ends a later hold. With only an Owner it ends the holds that the owner has now.
func (c *Client) ForceUnlockHolder(ctx context.Context, name string, holder Holder) (bool, error) {
	k, err := keysOf(c.prefix, name)
	if err != nil {
		return false, err
	}
	if holder.Token <= 0 {
		if holder.Owner == "" {
			return false, fmt.Errorf("%w: force lock %q: the holder has neither a token nor an owner", ErrInvalidOption, name)
		}
		if err := checkOwner(holder.Owner); err != nil {
			return false, fmt.Errorf("holdfast: force lock %q: %w", name, err)
		}
		holder.Token = 0
	}
	forced := false
	err = c.operate(ctx, "force lock", name, k, func() (err error) {
		forced, err = c.server.ForceHolder(ctx, k, holder.Owner, holder.Token)
		return err
	})
	return forced, err
}

// ForceUnlock is [Client.ForceUnlock] on all servers: it takes the lock from whoever holds it then. It returns true if the lock
// was held on a majority of them. A server that does not answer keeps the hold until its TTL expires, which does no harm while a
// majority is free.
func (r *Redlock) ForceUnlock(ctx context.Context, name string) (bool, error) {
	forced := false
	err := r.operateOn(ctx, "force lock", name, func(k script.Keys) (err error) {
		forced, err = r.quorum.Force(ctx, k)
		return err
	})
	return forced, err
}
