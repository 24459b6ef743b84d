package keepalive

import (
	"math"
	"time"
)

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
