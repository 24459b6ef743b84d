package core

import "github.com/holdfast-go/holdfast/core/internal/script"

// Semaphore returns a lock for at most n owners at a time. Each has a permit, or several by [WithPermits], with a TTL
// of its own. Semaphore does no I/O; Lock and TryLock report a wrong name, n or option. n is 1 to 1,000,000.
//
// Permits are granted in the order of arrival, across all processes. Unlocking grants as many waiters as fit, at once.
// A permit whose holder crashed is free after its TTL. What is held is a set of permits, and no counter exists: a late
// or repeated Unlock frees no permit of another holder.
//
// n belongs to the request, and is not stored: the first waiter gets its permits as soon as they fit into its own n.
// So a deployment may change n while the old one still runs. A smaller n revokes nothing: new holders wait until few
// enough are left. A greater n lets waiters in as soon as one with that n is the first.
//
// A Semaphore is reentrant: a Lock under a lease takes no further permit. It returns [ErrUpgrade] if it wants more
// permits than the owner has, because it would wait for itself.
//
// The fencing token of a later holder is greater, but of n valid tokens any may be the greatest. A resource that
// refuses smaller tokens would refuse valid holders. Divide it into n parts, and let each part check tokens by itself:
// see [Lease.Slot].
//
// On the same name, [Client.Fair] and [Client.Write] wait in the same queue until no permit is in use, and hold back
// later requests for permits: use Write to drain a semaphore for maintenance. [Client.Mutex] waits in no queue, so it may
// never get a busy semaphore. [Client.Read] and [Client.FairRead] are not excluded: each hold of theirs counts as one permit, but
// is granted whatever n is.
//
// There is no Semaphore over a [Redlock], because each of its servers could grant permits to n other owners, so a majority
// need not agree on n owners in all, or on any.
func (c *Client) Semaphore(name string, n int, opts ...LockOption) *Lock {
	return &c.newLock(name, c.queue("semaphore"), append([]LockOption{WithPermits(1), withLimit(n)}, opts...)).lock
}

// withLimit sets n of a semaphore, and refuses a wrong one. It is an option because Lock and TryLock report wrong options.
func withLimit(n int) LockOption {
	return newLockOption("withLimit", nil, func(c *lockConfig) {
		if n < 1 || n > script.MaxLimit {
			c.refuse(invalidOption("Semaphore(n = %d): 1 to %d is allowed", n, script.MaxLimit))
		}
		c.limit = n
	})
}

// Limit returns the strategy of a [Client.Semaphore] with that n, for adapters.
func (c *Client) Limit(n int) Strategy {
	return func(name string, opts ...LockOption) *Lock { return c.Semaphore(name, n, opts...) }
}

// WithPermits sets how many permits of a [Client.Semaphore] are taken at once: all or none. A request for many holds
// back those that came later, so that it gets its turn. 1 to 1,000, and n at most. Other locks refuse the option.
// Each permit costs Redis a microsecond and about 140 bytes. Defaults to 1.
func WithPermits(k int) LockOption {
	return newLockOption("WithPermits", nil, func(c *lockConfig) {
		if k < 1 || k > script.MaxPermits {
			c.refuse(invalidOption("WithPermits(%d): 1 to %d is allowed", k, script.MaxPermits))
		}
		c.permits = k
	})
}

// Slot returns the slot of a [Client.Semaphore]: 0 to n-1, the smallest that was free at the grant. Valid leases never
// have the same slot, and the tokens of one slot rise. So a resource in n parts can be fenced: the holder uses the
// part of its slot only, and the part refuses smaller tokens than it has seen. While clients request different n,
// slots go up to the largest n.
//
// [WithMinHold] keeps the permit taken, but not the slot: the next holder may get that at once. With [WithPermits] it is
// the first of the permits' slots. It is 0 for other locks, and for a [Multi].
func (l *Lease) Slot() int {
	if l == nil {
		return 0
	}
	return l.hold.Slot
}
