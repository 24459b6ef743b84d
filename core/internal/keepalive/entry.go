package keepalive

import (
	"sync/atomic"
	"time"
)

// Lease is what a [Renewer] must know of a lease, whose hold in Redis is an H. The Renewer calls Hold and Sender while it
// has locked its mutex, so these two must not call the Renewer. End, Lost and Renewed are called without the mutex.
type Lease[H any] interface {
	// Hold returns the hold to renew.
	Hold() *H
	// Sender returns the sender of renewals of the hold.
	Sender() Sender[H]
	// End stops the holder after a loss. It must not block: it is called before the renewals of other leases are sent.
	End(cause error)
	// Lost is called after End, when the renewals of other leases have been sent. It may call hooks and loggers.
	Lost(cause error)
	// HeldLong is called when the lease has been held for Terms.WarnAfter, and again at doubling intervals. It is called for
	// the lease that was granted first of those that are due within some seconds. others counts the others.
	HeldLong(others int)
	// Renewed is called when a renewal has succeeded, or has failed and the lease goes on.
	Renewed(answer Answer)
}

// Answer is how a renewal went whose lease goes on.
type Answer struct {
	Left time.Duration // for which the lease was still valid, without this renewal; may be negative if the answer is late
	Took time.Duration // from the sending to the answer; 0 if it was not sent
	Err  error         // nil if it has succeeded
}

// Sender sends renewals. Leases with equal Senders are renewed in one call, so a Sender must be comparable.
type Sender[H any] interface {
	// RenewAll sends renewals. It must not wait for the answers.
	RenewAll(renewals []*Renewal[H])
}

// Renewal is one request to renew one lease.
type Renewal[H any] struct {
	Hold  *H
	Token int64 // that the hold has in Redis, as far as the client knows
	// Left is for how long the hold has to be in Redis at least, whether this renewal succeeds or not.
	Left time.Duration
	// Sent must be set by the Sender when the request is sent. Until then the request waits in a queue.
	Sent atomic.Bool
	// Done takes the outcome, and when the request was sent. The Sender may call it late, or never. held is true if the hold
	// was renewed. If the hold is not in Redis, held is false and err is its [Cause], or nil if the cause is not known.
	// Any other err says nothing about the hold.
	Done func(sentAt Instant, held bool, err error)
}

// Entry is the part of a lease that its [Renewer] keeps. The zero value is not live.
type Entry[H any] struct {
	// Granted is when the entry was added. Add sets it, and it does not change while the entry is live.
	Granted Instant

	// Guarded by the mutex of the Renewer.
	lease     Lease[H]
	ttl       time.Duration // of the lock, which each renewal requests
	validity  validity
	heapIndex int         // in the heap, from 1; 0 if the entry is not live
	renewal   *Renewal[H] // the last one; nil before the first
}

// liveLocked returns true if the entry is in the heap. The caller must hold the mutex of the Renewer.
func (e *Entry[H]) liveLocked() bool { return e.heapIndex > 0 }

// EndAt returns when the lease ends, however often it is renewed. It returns Never if there is no limit. It must not be called
// before Add and LimitTo have returned.
func (e *Entry[H]) EndAt() Instant { return e.validity.endAt }

// Terms are what the servers have granted, and for how long the holder may use it.
type Terms struct {
	SentAt  Instant       // a reading of the clock before the request was sent
	Granted time.Duration // the TTL in Redis now
	TTL     time.Duration // of the lock: what each renewal requests
	Fixed   bool          // true if the lease is not renewed
	MaxHold time.Duration // after which the lease ends, however often it was renewed; 0 for no limit
	Token   int64         // of the grant

	WarnAfter time.Duration // after which HeldLong is called; 0 for never
}
