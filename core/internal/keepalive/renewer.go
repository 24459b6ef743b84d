package keepalive

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"math"
	"math/rand/v2"
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
	// Renewed is called when a renewal has succeeded, or has failed and the lease continues.
	Renewed(answer Answer)
}

// Answer is how a renewal went whose lease continues.
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
// before Add has returned.
func (e *Entry[H]) EndAt() Instant { return e.validity.endAt }

// Terms are what the servers have granted, and for how long the holder may use it.
type Terms struct {
	SentAt  Instant       // a reading of the clock before the request was sent
	Granted time.Duration // the TTL in Redis now
	TTL     time.Duration // of the lock: what each renewal requests
	Fixed   bool          // true if the lease is not renewed
	MaxHold time.Duration // after which the lease ends, however often it was renewed; 0 for no limit
	EndAt   Instant       // when it ends at the latest, in the same way; 0 for no limit
	RenewBy Instant       // when it is renewed for the first time at the latest; 0 if its TTL decides
	Token   int64         // of the grant

	WarnAfter time.Duration // after which HeldLong is called; 0 for never
}

// Instant is a reading of a [Clock], in nanoseconds since a zero point. The zero point differs from process to process, so
// an Instant has no meaning outside of its process.
type Instant time.Duration

// Add returns the instant d later, or earlier if d is negative.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub returns the time from earlier to i. It is negative if earlier is the later one.
func (i Instant) Sub(earlier Instant) time.Duration { return time.Duration(i - earlier) }

// Never is an instant later than all that a clock returns.
const Never = Instant(math.MaxInt64)

// validity has the deadlines of a lease by the local clock.
type validity struct {
	validUntil Instant // the lease ends here unless it is renewed, even if Redis does not answer
	renewAt    Instant // when the next renewal is due; Never if the TTL is fixed
	endAt      Instant // by Terms.MaxHold and Terms.EndAt; Never if there is no limit
	warnAt     Instant // when HeldLong is due; Never if it is not wanted

	ttl time.Duration // for which Redis granted or renewed last; renewals that fail are repeated at a part of it

	extended bool // true if the lease may last longer than the TTL of the lock

	token int64 // in Redis: of the grant, or a greater one since it was raised
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

// warnTime returns the first instant of a grid at which a lease has been held for that time. The grid keeps a client with very many
// leases from filling the log: of the leases that are due together only one is mentioned.
func warnTime(granted Instant, held time.Duration) Instant {
	grid := Instant(max(held/60, time.Second))
	return (granted.Add(held) + grid - 1) / grid * grid
}

// warnOf calls HeldLong for the leases that are due.
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
// The context is made by the first call of Context, because a caller that only locks and unlocks needs none, and it would cost
// allocations.
type End struct {
	mu sync.Mutex

	// Guarded by mu.
	reason error        // nil until the end
	held   heldContext  // its Context is nil until the first call of Context
	bound  *boundCancel // what Set calls; nil for an empty list

	outer *End // that Follow was called with; nil without
}

// boundCancel is one element of a list of cancel functions that Set calls. Not [context.AfterFunc], because it would start a
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

// heldContext is a context that ends with a lease. Its Err asks the clock too, because after a suspend of the host, or a pause
// of the process, the timer that ends the lease may fire later than the holder asks.
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
// Err is as for Context. The caller must call unbind when the lease need not end the context any more, and cancel.
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
// functions after mu is unlocked, because they may call methods of this End.
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
	HeldTooLong                  // Terms.MaxHold has passed, or Terms.EndAt
	Gone                         // the hold is not in Redis any more
	Replaced                     // another owner has the lock in Redis
	Forced                       // the hold was force-released
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
	case Forced:
		return "force-released"
	}
	return "taken"
}

// IsCause returns true if err is or wraps a [Cause], so that the lease is lost. It returns false for nil and for errors of
// the transport, after which the next renewal may succeed.
func IsCause(err error) bool {
	var c Cause
	return errors.As(err, &c)
}

// maxSleepLimit bounds the time until the timer fires next, because timers stop while the host is suspended. A timer that was
// set for later would notice too late that leases expired meanwhile.
const maxSleepLimit = time.Second

// provisionalLimit is how long after a grant for less than the TTL of the lock the first renewal is due, which asks for the
// whole TTL. Not at once, because most locks are released sooner, and then no renewal is sent.
const provisionalLimit = 20 * time.Millisecond

// Renewer renews all leases of a client, or ends them in time. It has no goroutine of its own: it has one timer, a heap
// ordered by the next deadline, and batches that a [Sender] sends. It is safe for concurrent use.
type Renewer[H any] struct {
	now   Clock
	drift func(ttl time.Duration) time.Duration

	// InUse is called, on a goroutine of the Renewer, right after the first lease was added, and then about every second while
	// there are leases. longest is the longest TTL of those that were added since the last call. InUse must not block. It may be
	// nil, and must be set before the first Add.
	InUse func(now Instant, longest time.Duration)

	mu sync.Mutex

	// Guarded by mu.
	live   entries[H]
	added  time.Duration // the longest TTL since the last call of InUse; 0 if no lease was added
	closed bool
	timer  *time.Timer // nil before the first entry
	wakeAt Instant     // when the timer fires; Never if it is not set
}

// NewRenewer returns a Renewer without leases. It trusts each TTL less the drift of that TTL. The function drift must not
// block: it is called with the mutex locked.
func NewRenewer[H any](now Clock, drift func(ttl time.Duration) time.Duration) *Renewer[H] {
	return &Renewer[H]{now: now, drift: drift, wakeAt: Never}
}

// TrustedUntil returns until when a grant or renewal that was sent at t is valid: for its TTL less the drift. It counts from
// the sending because the server started the TTL at some moment between the sending and the answer.
func (r *Renewer[H]) TrustedUntil(t Instant, ttl time.Duration) Instant {
	return t.Add(ttl - r.drift(ttl))
}

// Add makes the entry of a lease live. It returns false if the lease has expired by now, or if the Renewer is closed. Then
// no method of lease will be called. The entry must not be live.
func (r *Renewer[H]) Add(e *Entry[H], lease Lease[H], t Terms) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	e.Granted, e.lease, e.ttl = now, lease, t.TTL
	e.validity = validity{
		validUntil: r.TrustedUntil(t.SentAt, t.Granted), renewAt: Never, endAt: cmp.Or(t.EndAt, Never), warnAt: Never, ttl: t.Granted, token: t.Token,
	}
	switch {
	case t.Fixed:
	case t.Granted < t.TTL:
		e.validity.renewAt = min(now.Add(provisionalLimit), renewTime(t.SentAt, t.Granted))
	default:
		e.validity.renewAt = renewTime(t.SentAt, t.Granted)
	}
	if t.RenewBy != 0 {
		e.validity.renewAt = min(e.validity.renewAt, t.RenewBy)
	}
	if t.MaxHold > 0 {
		e.validity.endAt = min(e.validity.endAt, now.Add(t.MaxHold))
	}
	if t.WarnAfter > 0 {
		e.validity.warnAt = warnTime(now, t.WarnAfter)
	}
	if r.closed || now >= e.validity.validUntil {
		return false
	}
	heap.Push(&r.live, e)
	r.added = max(r.added, t.TTL)
	r.armLocked(now)
	return true
}

// Remove ends an entry without a loss. It returns false if the entry was not live: then the lease was released or lost
// before, or the Renewer is closed.
func (r *Renewer[H]) Remove(e *Entry[H]) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.removeLocked(e)
}

// RemoveIfOver ends an entry that is over by the clock, before the timer does, and returns why. It returns nil if the entry is
// valid, or was not live. The caller must call End and Lost of the lease.
func (r *Renewer[H]) RemoveIfOver(e *Entry[H]) error {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !e.liveLocked() || !e.validity.over(now) {
		return nil
	}
	r.removeLocked(e)
	return e.validity.lossCause(now)
}

// Close ends all entries without a loss and returns their leases. After Close, Add returns false.
func (r *Renewer[H]) Close() []Lease[H] {
	r.mu.Lock()
	r.closed = true
	drained := make([]Lease[H], 0, len(r.live))
	for len(r.live) > 0 {
		drained = append(drained, heap.Pop(&r.live).(*Entry[H]).lease)
	}
	if r.timer != nil {
		r.timer.Stop()
	}
	added, now := r.added, r.now()
	r.added = 0
	r.mu.Unlock()
	if added > 0 && r.InUse != nil {
		r.InUse(now, added) // their holds may outlast the Renewer
	}
	return drained
}

// removeLocked takes an entry out of the heap. It returns false if the entry was not live.
func (r *Renewer[H]) removeLocked(e *Entry[H]) bool {
	if !e.liveLocked() {
		return false
	}
	heap.Remove(&r.live, e.heapIndex-1)
	return true
}

// fixLocked restores the order of the heap after a deadline of a live entry has changed.
func (r *Renewer[H]) fixLocked(e *Entry[H]) { heap.Fix(&r.live, e.heapIndex-1) }

// ValidUntil returns until when the holder may rely on the lease, by the clock of the Renewer. After the entry has ended,
// it returns the last value.
func (r *Renewer[H]) ValidUntil(e *Entry[H]) Instant {
	r.mu.Lock()
	defer r.mu.Unlock()
	return min(e.validity.validUntil, e.validity.endAt)
}

// ExpiresAt returns when the server lets the hold expire, counted from the last grant or renewal that it has confirmed. One that it
// has not confirmed may let the hold last longer.
func (r *Renewer[H]) ExpiresAt(e *Entry[H]) Instant {
	r.mu.Lock()
	defer r.mu.Unlock()
	return e.validity.validUntil.Add(r.drift(max(e.ttl, e.validity.ttl)))
}

// WithinMaxHold returns ttl, or less if the hold would otherwise stay in Redis too long: at most one TTL of the lock after
// its MaxHold has passed. The holder has to stop within that TTL.
func (r *Renewer[H]) WithinMaxHold(e *Entry[H], ttl time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.validity.endAt == Never {
		return ttl
	}
	left := max(e.validity.endAt.Sub(r.now()), 0).Truncate(time.Millisecond)
	return min(ttl, left+e.ttl)
}

// Extended records that Redis gave the lease a TTL, by a request that was sent at sentAt. The validity never becomes
// shorter. Extended returns false, and records nothing, if the entry is not live any more.
func (r *Renewer[H]) Extended(e *Entry[H], sentAt Instant, ttl time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !e.liveLocked() {
		return false
	}
	e.validity.validUntil, e.validity.extended = max(e.validity.validUntil, r.TrustedUntil(sentAt, ttl)), true
	r.fixLocked(e)
	return true
}

// Raised records that the lease has a token in Redis. A token smaller than the recorded one has no effect.
func (r *Renewer[H]) Raised(e *Entry[H], token int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.validity.token = max(e.validity.token, token)
}

// Outstanding returns for how long a server may still have the hold. It is the TTL of the lock, or more if the lease was
// extended.
func (r *Renewer[H]) Outstanding(e *Entry[H]) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !e.validity.extended {
		return e.ttl
	}
	return max(e.ttl, r.leftLocked(e))
}

// Provisional returns true if Redis has granted the lease for less than the TTL of the lock, and no renewal has succeeded.
func (r *Renewer[H]) Provisional(e *Entry[H]) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return e.validity.ttl < e.ttl
}

// leftLocked returns for how long the hold has to be in Redis for the lease to stay valid until validUntil.
func (r *Renewer[H]) leftLocked(e *Entry[H]) time.Duration {
	left := e.validity.validUntil.Sub(r.now())
	return left + r.drift(left)
}

// tick ends the entries that are over and renews those that are due. The timer calls it.
func (r *Renewer[H]) tick() {
	now := r.now()
	r.mu.Lock()
	r.wakeAt = Never
	over, long, due := r.takeDueLocked(now)
	r.armLocked(now)
	added, inUse := r.added, r.added > 0 || len(r.live) > 0
	r.added = 0
	r.mu.Unlock()

	// The order matters because a hook or logger in Lost may take long. Holders must stop and renewals must be sent before
	// that.
	for _, e := range over {
		e.lease.End(e.validity.lossCause(now))
	}
	for sender, renewals := range due {
		sender.RenewAll(renewals)
	}
	if inUse && r.InUse != nil {
		r.InUse(now, added)
	}
	for _, e := range over {
		e.lease.Lost(e.validity.lossCause(now))
	}
	warnOf(long)
}

// takeDueLocked removes the entries that are over, and returns them. It also returns the entries that have been held for
// long, and the renewals that are due, by sender.
func (r *Renewer[H]) takeDueLocked(now Instant) (over, long []*Entry[H], due map[Sender[H]][]*Renewal[H]) {
	due = make(map[Sender[H]][]*Renewal[H])
	for len(r.live) > 0 && r.live[0].validity.next() <= now {
		e := r.live[0]
		if e.validity.over(now) {
			r.removeLocked(e)
			over = append(over, e)
			continue
		}
		if e.validity.warnAt <= now {
			long = append(long, e)
			e.validity.warnAt = warnTime(e.Granted, 2*now.Sub(e.Granted))
			r.fixLocked(e)
			continue
		}
		// If no answer comes, the next renewal is due after half the usual time. It may take a better connection.
		e.validity.renewAt = now.Add(max(e.validity.ttl/6, time.Millisecond))
		r.fixLocked(e)
		if e.renewal != nil && !e.renewal.Sent.Load() {
			continue // the last one is still queued: another would only make the queue longer
		}
		e.renewal = r.renewalLocked(e)
		sender := e.lease.Sender()
		due[sender] = append(due[sender], e.renewal)
	}
	return over, long, due
}

// renewalLocked makes the next renewal of an entry.
func (r *Renewer[H]) renewalLocked(e *Entry[H]) *Renewal[H] {
	return &Renewal[H]{
		Hold:  e.lease.Hold(),
		Token: e.validity.token,
		Left:  r.leftLocked(e),
		Done:  func(sentAt Instant, held bool, err error) { r.answered(e, sentAt, held, err) },
	}
}

// answered records the outcome of a renewal. A late answer counts too, because the validity counts from when the renewal was
// sent. It has no effect if the entry is not live any more.
func (r *Renewer[H]) answered(e *Entry[H], sentAt Instant, held bool, err error) {
	lost := false
	r.mu.Lock()
	if !e.liveLocked() {
		r.mu.Unlock()
		return // released or lost meanwhile
	}
	now := r.now()
	answer := Answer{Left: e.validity.leftAt(now), Err: err}
	if sentAt != 0 {
		answer.Took = now.Sub(sentAt)
	}
	switch {
	case err != nil && !IsCause(err):
		// This is no loss: the lease is valid until validUntil. The retry is spread at random, because renewals that failed
		// together would otherwise be repeated together.
		retry := max(e.validity.ttl/12, time.Millisecond)
		e.validity.renewAt = min(e.validity.renewAt, now.Add(retry/2+rand.N(retry)))
	case held:
		e.validity.validUntil = max(e.validity.validUntil, r.TrustedUntil(sentAt, e.ttl))
		e.validity.renewAt, e.validity.ttl = renewTime(sentAt, e.ttl), e.ttl
	default:
		lost = r.removeLocked(e)
	}
	if !lost {
		r.fixLocked(e)
		r.armLocked(now)
	}
	r.mu.Unlock()

	if !lost {
		e.lease.Renewed(answer)
		return
	}
	cause := cmp.Or(err, error(Taken))
	e.lease.End(cause)
	e.lease.Lost(cause)
}

// renewTime returns the instant a third of the TTL after sentAt, rounded down to a grid. It is a grid because leases that were
// taken at about the same time are then renewed in the same batch. It is a third because two renewals may get lost without the
// lease.
func renewTime(sentAt Instant, ttl time.Duration) Instant {
	at := sentAt.Add(ttl / 3)
	grid := Instant(max(min(ttl/100, 25*time.Millisecond), time.Microsecond))
	return at - at%grid
}

// armLocked sets the timer for the first deadline, unless it fires earlier anyway. Nothing sets it later, because a timer that
// fires too early does no harm, and so removing an entry need not change it.
func (r *Renewer[H]) armLocked(now Instant) {
	if len(r.live) == 0 {
		return
	}
	at := min(r.live[0].validity.next(), now.Add(maxSleepLimit))
	if at >= r.wakeAt {
		return
	}
	r.wakeAt = at
	in := max(at.Sub(now), 0)
	if r.timer == nil {
		r.timer = time.AfterFunc(0, r.tick) // InUse is due
	} else {
		r.timer.Reset(in)
	}
}

// Live is a live lease at one instant.
type Live[H any] struct {
	Lease      Lease[H]
	Granted    Instant
	ValidUntil Instant       // until when the holder may rely on it
	TTL        time.Duration // of the lock
	Renewed    bool          // false if the TTL is fixed
}

// Live returns all leases that are live at one instant, in no order. Their methods must not be called: the leases may have
// ended since.
func (r *Renewer[H]) Live() []Live[H] {
	r.mu.Lock()
	count := len(r.live)
	r.mu.Unlock()
	live := make([]Live[H], 0, count) // before mu is locked again: the memory of many leases takes time
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.live {
		live = append(live, Live[H]{
			Lease: e.lease, Granted: e.Granted, ValidUntil: min(e.validity.validUntil, e.validity.endAt),
			TTL: e.ttl, Renewed: e.validity.renewAt != Never,
		})
	}
	return live
}
