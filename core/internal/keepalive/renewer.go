package keepalive

import (
	"cmp"
	"container/heap"
	"math/rand/v2"
	"sync"
	"time"
)

// maxSleepLimit bounds the time until the timer fires next. Why: timers stop while the host is suspended. A timer that was
// set for later would notice too late that leases expired meanwhile.
const maxSleepLimit = time.Second

// provisionalLimit is how long after a grant for less than the TTL of the lock the first renewal is due, which asks for the
// whole TTL. Why not at once: most locks are released sooner, and then no renewal is sent.
const provisionalLimit = 20 * time.Millisecond

// Renewer renews all leases of a client, or ends them in time. It has no goroutine of its own: it has one timer, a heap
// ordered by the next deadline, and batches that a [Sender] sends. It is safe for concurrent use.
type Renewer[H any] struct {
	now   Clock
	drift func(ttl time.Duration) time.Duration

	mu sync.Mutex

	// Guarded by mu.
	live   entries[H]
	closed bool
	timer  *time.Timer // nil before the first entry
	wakeAt Instant     // when the timer fires; Never if it is not set
}

// NewRenewer returns a Renewer without leases. It trusts each TTL less the drift of that TTL. The function drift must not
// block: it is called with the mutex locked.
func NewRenewer[H any](now Clock, drift func(ttl time.Duration) time.Duration) *Renewer[H] {
	return &Renewer[H]{now: now, drift: drift, wakeAt: Never}
}

// TrustedUntil returns until when a grant or renewal that was sent at t is valid: for its TTL less the drift. Why from the
// sending: the server started the TTL at some moment between the sending and the answer.
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
		validUntil: r.TrustedUntil(t.SentAt, t.Granted), renewAt: Never, endAt: Never, warnAt: Never, ttl: t.Granted, token: t.Token,
	}
	switch {
	case t.Fixed:
	case t.Granted < t.TTL:
		e.validity.renewAt = min(now.Add(provisionalLimit), renewTime(t.SentAt, t.Granted))
	default:
		e.validity.renewAt = renewTime(t.SentAt, t.Granted)
	}
	if t.MaxHold > 0 {
		e.validity.endAt = now.Add(t.MaxHold)
	}
	if t.WarnAfter > 0 {
		e.validity.warnAt = warnTime(now, t.WarnAfter)
	}
	if r.closed || now >= e.validity.validUntil {
		return false
	}
	heap.Push(&r.live, e)
	r.armLocked(now)
	return true
}

// LimitTo makes the lease end at an instant at the latest, as MaxHold does. It must be called before the holder has the lease.
func (r *Renewer[H]) LimitTo(e *Entry[H], end Instant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.validity.endAt = min(e.validity.endAt, end)
	if e.liveLocked() {
		r.fixLocked(e)
		r.armLocked(r.now())
	}
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
	defer r.mu.Unlock()
	r.closed = true
	drained := make([]Lease[H], 0, len(r.live))
	for len(r.live) > 0 {
		drained = append(drained, heap.Pop(&r.live).(*Entry[H]).lease)
	}
	if r.timer != nil {
		r.timer.Stop()
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
	r.mu.Unlock()

	// Why this order: a hook or logger in Lost may take long. Holders must stop and renewals must be sent before that.
	for _, e := range over {
		e.lease.End(e.validity.lossCause(now))
	}
	for sender, renewals := range due {
		sender.RenewAll(renewals)
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
			e.warnLocked(now)
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
		// This is no loss: the lease is valid until validUntil. The retry is spread at random. Why: renewals that failed
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

// renewTime returns the instant a third of the TTL after sentAt, rounded down to a grid. Why a grid: leases that were taken
// at about the same time are then renewed in the same batch. Why a third: two renewals may get lost without the lease.
func renewTime(sentAt Instant, ttl time.Duration) Instant {
	at := sentAt.Add(ttl / 3)
	grid := Instant(max(min(ttl/100, 25*time.Millisecond), time.Microsecond))
	return at - at%grid
}

// armLocked sets the timer for the first deadline, unless it fires earlier anyway. Why nothing sets it later: a timer that
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
		r.timer = time.AfterFunc(in, r.tick)
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
	live := make([]Live[H], 0, r.Count()) // before mu is locked again: the memory of many leases takes time
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

// Count returns how many leases are live.
func (r *Renewer[H]) Count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.live)
}
