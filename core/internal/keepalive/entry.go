package keepalive

import (
	"container/heap"
	"math"
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

// Never is an instant later than all that a clock returns.
const Never = Instant(math.MaxInt64)

// validity has the deadlines of a lease by the local clock.
type validity struct {
	validUntil Instant // the lease ends here unless it is renewed, even if Redis does not answer
	renewAt    Instant // when the next renewal is due; Never if the TTL is fixed
	endAt      Instant // when MaxHold has passed, or by LimitTo; Never if there is no limit
	warnAt     Instant // when HeldLong is due; Never if it is not wanted

	ttl time.Duration // for which Redis granted or renewed last; renewals that fail are repeated at a part of it

	extended bool // true if the lease may last longer than the TTL of the lock

	token int64 // in Redis: that of the grant, or a greater one since it was raised
}

// next returns the first deadline, at which the Renewer has to do something.
func (v validity) next() Instant { return min(v.validUntil, v.renewAt, v.endAt, v.warnAt) }

// leftAt returns for how long the lease is valid without a renewal.
func (v validity) leftAt(now Instant) time.Duration { return min(v.validUntil, v.endAt).Sub(now) }

// over returns true if the lease has ended by the local clock. Then it counts as lost, whatever Redis answers later.
func (v validity) over(now Instant) bool { return now >= min(v.validUntil, v.endAt) }

// lossCause returns why a lease that is over, and was not released, has ended.
func (v validity) lossCause(now Instant) error {
	switch {
	case now >= v.endAt && now < v.validUntil:
		return HeldTooLong
	case v.renewAt == Never:
		return FixedTTL
	}
	return Expired
}

// entries is a heap of entries, ordered by the next deadline. It keeps the index of each entry in the entry, so that Remove
// and Fix find it. Only container/heap may call the methods.
type entries[H any] []*Entry[H]

var _ heap.Interface = (*entries[struct{}])(nil)

func (h entries[H]) Len() int           { return len(h) }
func (h entries[H]) Less(i, j int) bool { return h[i].validity.next() < h[j].validity.next() }

func (h entries[H]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapIndex, h[j].heapIndex = i+1, j+1
}

func (h *entries[H]) Push(x any) {
	e := x.(*Entry[H])
	*h = append(*h, e)
	e.heapIndex = len(*h)
}

func (h *entries[H]) Pop() any {
	old := *h
	last := len(old) - 1
	e := old[last]
	e.heapIndex = 0
	old[last] = nil
	*h = old[:last]
	return e
}

// warnTime returns the first instant of a grid at which a lease has been held for that time. Why a grid: of the leases that
// are due together only one is mentioned, so that a client with very many leases does not fill the log.
func warnTime(granted Instant, held time.Duration) Instant {
	grid := Instant(max(held/60, time.Second))
	return (granted.Add(held) + grid - 1) / grid * grid
}

// warnLocked sets when HeldLong of a lease is due next: when it has been held for twice as long.
func (e *Entry[H]) warnLocked(now Instant) {
	e.validity.warnAt = warnTime(e.Granted, 2*now.Sub(e.Granted))
}

// warnOf calls HeldLong for those of the leases that are due.
func warnOf[H any](long []*Entry[H]) {
	if len(long) == 0 {
		return
	}
	first := long[0]
	for _, e := range long[1:] {
		if e.Granted < first.Granted {
			first = e
		}
	}
	first.lease.HeldLong(len(long) - 1)
}
