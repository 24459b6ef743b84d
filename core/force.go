package core

import (
	"context"
	"fmt"
)

// ForceUnlock takes the lock of that name from its holders, of whatever strategy. It returns true if the lock was
// held. It does not stop a holder. The holder notices at its next renewal, a third of its TTL later at most, and may
// work beside its successor until then. The successor's fencing token is greater, so a resource that checks tokens is
// safe.
//
// It refuses data of another program at the key of the lock with [ErrWrongType], as all operations do.
func (c *Client) ForceUnlock(ctx context.Context, name string) (bool, error) {
	k, err := keysOf(c.prefix, name)
	if err != nil {
		return false, err
	}
	if !c.operations.Start() {
		return false, ErrClosed
	}
	defer c.operations.Finish()
	forced, err := c.server.Force(ctx, k, c.ids.Next())
	if err != nil {
		return false, errorf("holdfast: force lock %q: %w", name, failure(ctx, k.Lock, err))
	}
	return forced, nil
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
	if !c.operations.Start() {
		return false, ErrClosed
	}
	defer c.operations.Finish()
	forced, err := c.server.ForceHolder(ctx, k, holder.Owner, holder.Token)
	if err != nil {
		return forced, errorf("holdfast: force lock %q: %w", name, failure(ctx, k.Lock, err))
	}
	return forced, nil
}

// ForceUnlock is [Client.ForceUnlock] on all servers. It returns true if the lock was held on a majority of them. A
// server that does not answer keeps the hold until its TTL expires, which does no harm while a majority is free.
func (r *Redlock) ForceUnlock(ctx context.Context, name string) (bool, error) {
	k, err := keysOf(r.prefix, name)
	if err != nil {
		return false, err
	}
	if !r.operations.Start() {
		return false, ErrClosed
	}
	defer r.operations.Finish()
	forced, err := r.quorum.Force(ctx, k)
	if err != nil {
		return false, errorf("holdfast: force lock %q: %w", name, failure(ctx, k.Lock, err))
	}
	return forced, nil
}
