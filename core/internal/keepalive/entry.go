package keepalive

import (
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// Lease is what a [Renewer] must know of a lease, whose hold in Redis is an H. Its methods must be quick.
type Lease[H any] interface {
	// Hold returns the hold to renew.
	Hold() *H
	// Sender returns what renews the hold.
	Sender() Sender[H]
	// End stops the holder. It is called before all else that follows a loss.
	End(cause error)
	// Lost follows End, without haste.
	Lost(cause error)
	// Renewed is called when a renewal has succeeded, or has failed with err.
	Renewed(err error)
}

// Sender sends renewals. Leases with the same Sender are renewed together, so it must be comparable.
type Sender[H any] interface {
	// RenewAll sends renewals without waiting for the answers.
	RenewAll(renewals []*Renewal[H])
}

// Renewal is one lease's turn to be renewed.
type Renewal[H any] struct {
	Hold  *H
	Token int64
	// Left is for how long the hold has to be in Redis at least, whether this renewal succeeds or not.
	Left time.Duration
	// Sent must be set when the request is sent. Until then the request waits in a queue.
	Sent atomic.Bool
	// Done takes the outcome, and when the request was sent. It may be called late, or never. If the hold is not there,
	// err is its [Cause], as far as the cause is known.
	Done func(sentAt clock.Instant, held bool, err error)
}

// Entry is the part of a lease that its [Renewer] keeps. The zero value is not live.
type Entry[H any] struct {
	// Granted is when the entry was added.
	Granted clock.Instant

	// Guarded by the mutex of the Renewer.
	lease    Lease[H]
	ttl      time.Duration // of the lock
	validity validity
	place    int         // in the heap, from 1; 0 if the entry is not live
	renewal  *Renewal[H] // the last one, nil before the first
}

func (e *Entry[H]) live() bool { return e.place > 0 }

// Terms are what was granted.
type Terms struct {
	SentAt  clock.Instant // a reading of the clock before the request was sent
	Granted time.Duration // the TTL in Redis now
	TTL     time.Duration // of the lock: that of each renewal
	Fixed   bool          // the lease is not renewed
	MaxHold time.Duration // after which the lease ends, however often it was renewed; 0 for no limit
	Token   int64
}
