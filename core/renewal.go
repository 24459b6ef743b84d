package core

import (
	"cmp"
	"container/heap"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
)

const (
	never = clock.Instant(math.MaxInt64)

	// maxTimerSleep bounds the time until the timer fires next. Why: timers stop while the host is suspended. A timer that
	// was set for later would notice too late that leases expired meanwhile.
	maxTimerSleep = time.Second
)

// validity is the deadlines of a lease. They count from a reading of the clock before the request was sent. So they are
// never later than the expiry in Redis.
type validity struct {
	validUntil clock.Instant // the lease ends here unless it is renewed, even if Redis does not answer
	renewAt    clock.Instant // never, if the TTL is fixed
	endAt      clock.Instant // WithMaxHold

	ttl time.Duration // for which Redis gave the lease the last time: the pace of renewals that fail

	extended bool // by Extend: it may last longer than the TTL

	token int64 // in Redis: the lease's own, or a greater one since it was raised
}

func (t validity) next() clock.Instant { return min(t.validUntil, t.renewAt, t.endAt) }

// drift is taken off every TTL: for the millisecond to which Redis rounds, and for clocks that do not run at
// the same rate (NTP slews by up to 500 ppm).
func drift(ttl time.Duration) time.Duration { return 2*time.Millisecond + ttl/1000 }

// trustedUntil returns until when a grant or renewal that was sent at t is valid: its TTL less the drift.
func (r *renewer) trustedUntil(t clock.Instant, ttl time.Duration) clock.Instant {
	return t.Add(ttl - r.drift(ttl))
}

// renewer keeps all leases of a client alive, or ends them in time. It has no goroutine of its own: one timer,
// a heap ordered by what comes next, and batches that the executor sends.
//
// A lease is live exactly while it is in the heap. That makes Unlock, loss and Close exclude each other: only
// one of them can take it out.
type renewer struct {
	now    clock.Clock
	drift  func(ttl time.Duration) time.Duration
	onLost func(l *Lease, cause error)
	onTry  func(l *Lease, err error)

	mu     sync.Mutex
	leases leaseHeap
	closed bool
	timer  *time.Timer
	wakeAt clock.Instant // when the timer fires; never, if it is not set
}

func newRenewer(now clock.Clock, drift func(ttl time.Duration) time.Duration) *renewer {
	return &renewer{now: now, drift: drift, wakeAt: never}
}

// add makes the lease live, for ttl from sentAt unless it is renewed. It fails if the lease's time is over already
// or the client was closed.
func (r *renewer) add(l *Lease, sentAt clock.Instant, ttl time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	l.granted = now
	l.validity = validity{validUntil: r.trustedUntil(sentAt, ttl), renewAt: never, endAt: never, ttl: ttl, token: l.token}
	if !l.hold.fixed {
		l.validity.renewAt = renewTime(sentAt, ttl)
	}
	if l.hold.maxHold > 0 {
		l.validity.endAt = now.Add(l.hold.maxHold)
	}
	switch {
	case r.closed:
		return ErrClosed
	case now >= l.validity.validUntil:
		return errExpired
	}
	heap.Push(&r.leases, l)
	r.armLocked(now)
	return nil
}

// remove ends the lease without reporting a loss. It returns false if the lease had ended.
func (r *renewer) remove(l *Lease) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.removeLocked(l)
}

// close ends all leases and returns them; no lease becomes live afterwards.
func (r *renewer) close() []*Lease {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	drained := make([]*Lease, 0, len(r.leases))
	for len(r.leases) > 0 {
		drained = append(drained, heap.Pop(&r.leases).(*Lease))
	}
	if r.timer != nil {
		r.timer.Stop()
	}
	return drained
}

func (r *renewer) removeLocked(l *Lease) bool {
	if l.index < 0 {
		return false
	}
	heap.Remove(&r.leases, l.index)
	return true
}

// validUntil returns the end of the lease's trusted time; it stays what it was once the lease is over.
func (r *renewer) validUntil(l *Lease) clock.Instant {
	r.mu.Lock()
	defer r.mu.Unlock()
	return min(l.validity.validUntil, l.validity.endAt)
}

// withinMaxHold returns a TTL with which the hold ends in Redis one TTL of the lock after its longest time, or sooner:
// that is what the holder has to stop in.
func (r *renewer) withinMaxHold(l *Lease, ttl time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.validity.endAt == never {
		return ttl
	}
	left := max(l.validity.endAt.Sub(r.now()), 0).Truncate(time.Millisecond)
	return min(ttl, left+l.hold.ttl)
}

// extended records that the server gave the lease ttl when asked at sentAt. It reports false if the lease
// was over before the answer came.
func (r *renewer) extended(l *Lease, sentAt clock.Instant, ttl time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.index < 0 {
		return false
	}
	l.validity.validUntil, l.validity.extended = max(l.validity.validUntil, r.trustedUntil(sentAt, ttl)), true
	heap.Fix(&r.leases, l.index)
	return true
}

// tick ends what is over and renews what is due.
func (r *renewer) tick() {
	now := r.now()
	r.mu.Lock()
	r.wakeAt = never
	due := make(map[protocol][]*renewal)
	var over []*Lease
	for len(r.leases) > 0 && r.leases[0].validity.next() <= now {
		l := r.leases[0]
		if now >= min(l.validity.validUntil, l.validity.endAt) {
			r.removeLocked(l)
			over = append(over, l)
			continue
		}
		// Should no answer come, the next attempt leaves after half the usual time, and with it the chance of a
		// better connection.
		l.validity.renewAt = now.Add(max(l.validity.ttl/6, time.Millisecond))
		heap.Fix(&r.leases, 0)
		if l.renewal != nil && !l.renewal.sent.Load() {
			continue // too busy to send even the last one: another would only make the queue longer
		}
		l.renewal = r.renewal(l)
		due[l.protocol] = append(due[l.protocol], l.renewal)
	}
	r.armLocked(now)
	r.mu.Unlock()

	// First what cannot wait for hooks and loggers: holders stop, renewals leave.
	for _, l := range over {
		l.end.set(l.validity.lossCause(now))
	}
	for p, renewals := range due {
		p.renewAll(renewals)
	}
	for _, l := range over {
		r.onLost(l, l.validity.lossCause(now))
	}
}

// lossCause returns why a lease that was not unlocked has ended.
func (t validity) lossCause(now clock.Instant) error {
	switch {
	case now >= t.endAt && now < t.validUntil:
		return errHeldTooLong
	case t.renewAt == never:
		return errRanOut
	}
	return errExpired
}

// raised records that the lease has a greater token in Redis.
func (r *renewer) raised(l *Lease, token int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l.validity.token = max(l.validity.token, token)
}

// outstanding returns the lease's hold as a server may still have it: for longer than its TTL, if it was extended.
func (r *renewer) outstanding(l *Lease) *hold {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !l.validity.extended {
		return &l.hold
	}
	left := max(l.hold.ttl, r.leftLocked(l))
	h := l.hold
	h.ttl = left
	return &h
}

// leftLocked returns for how long the hold is in Redis at least, as far as the holder relies on it; r.mu is held.
func (r *renewer) leftLocked(l *Lease) time.Duration {
	left := l.validity.validUntil.Sub(r.now())
	return left + r.drift(left)
}

func (r *renewer) renewal(l *Lease) *renewal {
	return &renewal{
		hold:  &l.hold,
		token: l.validity.token,
		left:  r.leftLocked(l),
		done:  func(sentAt clock.Instant, held bool, err error) { r.answered(l, sentAt, held, err) },
	}
}

// answered takes in the outcome of a renewal, however late: what counts is when it was sent.
func (r *renewer) answered(l *Lease, sentAt clock.Instant, held bool, err error) {
	lost := false
	r.mu.Lock()
	if l.index < 0 {
		r.mu.Unlock()
		return // unlocked or lost meanwhile
	}
	switch {
	case err != nil && !errors.Is(err, ErrLeaseLost):
		// Not a loss: the lease stands until its time is over. Ask again soon.
		retry := max(l.validity.ttl/12, time.Millisecond)
		l.validity.renewAt = min(l.validity.renewAt, r.now().Add(retry/2+rand.N(retry)))
	case held:
		l.validity.validUntil = max(l.validity.validUntil, r.trustedUntil(sentAt, l.hold.ttl))
		l.validity.renewAt, l.validity.ttl = renewTime(sentAt, l.hold.ttl), l.hold.ttl
	default:
		lost = r.removeLocked(l)
	}
	if !lost {
		heap.Fix(&r.leases, l.index)
		r.armLocked(r.now())
	}
	r.mu.Unlock()

	if lost {
		r.onLost(l, cmp.Or(err, errTaken))
	} else {
		r.onTry(l, err)
	}
}

// renewTime is a third of the TTL after sentAt, rounded down to a grid, so that leases taken at about the
// same time are renewed in the same batch.
func renewTime(sentAt clock.Instant, ttl time.Duration) clock.Instant {
	at := sentAt.Add(ttl / 3)
	grid := clock.Instant(max(min(ttl/100, 25*time.Millisecond), time.Microsecond))
	return at - at%grid
}

// armLocked sets the timer for what comes next; r.mu is held. A timer that fires too early does no harm, so removing
// leases never touches it.
func (r *renewer) armLocked(now clock.Instant) {
	if len(r.leases) == 0 {
		return
	}
	at := min(r.leases[0].validity.next(), now.Add(maxTimerSleep))
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

// leaseHeap orders leases by what comes next for them. It implements [heap.Interface].
type leaseHeap []*Lease

func (h leaseHeap) Len() int           { return len(h) }
func (h leaseHeap) Less(i, j int) bool { return h[i].validity.next() < h[j].validity.next() }

func (h leaseHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *leaseHeap) Push(x any) {
	l := x.(*Lease)
	l.index = len(*h)
	*h = append(*h, l)
}

func (h *leaseHeap) Pop() any {
	old := *h
	last := len(old) - 1
	l := old[last]
	l.index = -1
	old[last] = nil
	*h = old[:last]
	return l
}
