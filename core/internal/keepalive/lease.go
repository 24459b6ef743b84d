package keepalive

import (
	"container/heap"
	"context"
	"errors"
	"math"
	"sync"
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

// End is the end of a lease and its cause. The zero value has not ended. It is safe for concurrent use.
//
// The context is made by the first call of Context. Why: a caller that only locks and unlocks needs none, and it would cost
// allocations.
type End struct {
	mu sync.Mutex

	// Guarded by mu.
	reason error        // nil until the end
	held   heldContext  // its Context is nil until the first call of Context
	bound  *boundCancel // what Set calls; nil for an empty list

	outer *End // that Follow was called with; nil without
}

// boundCancel is one element of a list of cancel functions that Set calls. Why not [context.AfterFunc]: it would start a
// goroutine.
type boundCancel struct {
	end  context.CancelCauseFunc
	next *boundCancel
}

// Expirer is a lease that can end by the clock.
type Expirer interface {
	// EndIfOver ends the lease if it is over by the clock. It must not block.
	EndIfOver()
}

// heldContext is a context that ends with a lease. Its Err asks the clock too. Why: after a suspend of the host, or a pause of
// the process, the timer that ends the lease may fire later than the holder asks.
type heldContext struct {
	context.Context // which the lease has been bound to
	lease           Expirer
}

// Err implements context.Context.
func (c *heldContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	c.lease.EndIfOver()
	return c.Context.Err()
}

// Context returns the context that ends with the lease, with its cause. The first call decides on the parent: the context
// has its values, and also ends with it. If the lease has ended, so has the context. The Err of the context is nil only while
// the lease is valid by the clock.
func (e *End) Context(parent context.Context, lease Expirer) context.Context {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.held.Context == nil {
		ctx, cancel := context.WithCancelCause(parent)
		e.held, e.bound = heldContext{ctx, lease}, &boundCancel{cancel, e.bound}
		if e.reason != nil {
			cancel(e.reason)
		}
	}
	return &e.held
}

// Within returns a context that has the values of parent, and ends with it, with the lease, or when cancel is called. Its
// Err is as that of Context. The caller must call unbind when the lease need not end the context any more, and cancel.
func (e *End) Within(parent context.Context, lease Expirer) (ctx context.Context, cancel context.CancelCauseFunc, unbind func()) {
	ctx, cancel = context.WithCancelCause(parent)
	return &heldContext{ctx, lease}, cancel, e.Bind(cancel)
}

// Bind has end called with the cause when the lease ends, at once if it has ended. The caller must call unbind when that is
// no longer needed. To call unbind again, or after the end, does nothing.
func (e *End) Bind(end context.CancelCauseFunc) (unbind func()) {
	e.mu.Lock()
	if cause := e.reason; cause != nil {
		e.mu.Unlock() // first: end may call methods of this End
		end(cause)
		return func() {}
	}
	defer e.mu.Unlock()
	b := &boundCancel{end, e.bound}
	e.bound = b
	return func() { e.unbind(b) }
}

// Follow has ended called with the cause when outer ends, or an End that outer follows, until e ends. So it is called for an
// outermost lease even if one between has ended before. Follow must be called once at most, before other goroutines can
// follow e.
func (e *End) Follow(outer *End, ended context.CancelCauseFunc) {
	e.outer = outer
	for ; outer != nil; outer = outer.outer {
		unbind := outer.Bind(ended)
		e.Bind(func(error) { unbind() })
	}
}

// unbind takes b out of the list, if it is there.
func (e *End) unbind(b *boundCancel) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for at := &e.bound; *at != nil; at = &(*at).next {
		if *at == b {
			*at = b.next
			return
		}
	}
}

// Cause returns why the lease has ended. It returns nil if the lease has not ended.
func (e *End) Cause() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.reason
}

// Set ends the lease with this cause, which must not be nil. It does nothing if the lease has ended. It calls the bound
// functions after mu is unlocked. Why: they may call methods of this End.
func (e *End) Set(cause error) {
	e.mu.Lock()
	if e.reason != nil {
		e.mu.Unlock()
		return
	}
	e.reason = cause
	bound := e.bound
	e.bound = nil
	e.mu.Unlock()
	for ; bound != nil; bound = bound.next {
		bound.end(cause)
	}
}

// Cause is why a lease has ended although its holder has not released it. It is an error, so that the answer to a renewal
// can carry it. The zero value is no cause.
type Cause int

// The causes. The first three are found by the local clock, the others by the answer to a renewal.
const (
	Expired     Cause = iota + 1 // no renewal has succeeded in time
	FixedTTL                     // the TTL of a lease without renewals has expired
	HeldTooLong                  // Terms.MaxHold has passed, or the instant of LimitTo
	Gone                         // the hold is not in Redis any more
	Replaced                     // another owner has the lock in Redis
	Taken                        // the hold expired, is gone or was replaced in Redis: it is not known which
)

// Error returns the cause in a few words, for logs and for wrapping errors.
func (c Cause) Error() string {
	switch c {
	case Expired:
		return "expired"
	case FixedTTL:
		return "its fixed TTL has expired"
	case HeldTooLong:
		return "held for too long"
	case Gone:
		return "gone"
	case Replaced:
		return "replaced"
	}
	return "taken"
}

// IsCause returns true if err is or wraps a [Cause], so that the lease is lost. It returns false for nil and for errors of
// the transport, after which the next renewal may succeed.
func IsCause(err error) bool {
	var c Cause
	return errors.As(err, &c)
}
