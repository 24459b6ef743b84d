package keepalive

import (
	"math"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// Never is later than every instant.
const Never = clock.Instant(math.MaxInt64)

// validity is the deadlines of a lease.
type validity struct {
	validUntil clock.Instant // the lease ends here unless it is renewed, even if Redis does not answer
	renewAt    clock.Instant // Never, if the TTL is fixed
	endAt      clock.Instant // by MaxHold

	ttl time.Duration // for which Redis gave the lease the last time: the pace of renewals that fail

	extended bool // the lease may last longer than the TTL

	token int64 // in Redis: the lease's own, or a greater one since it was raised
}

func (v validity) next() clock.Instant { return min(v.validUntil, v.renewAt, v.endAt) }

// over reports whether the lease has ended, whatever Redis says.
func (v validity) over(now clock.Instant) bool { return now >= min(v.validUntil, v.endAt) }

// lossCause returns why a lease that was not released has ended.
func (v validity) lossCause(now clock.Instant) error {
	switch {
	case now >= v.endAt && now < v.validUntil:
		return HeldTooLong
	case v.renewAt == Never:
		return FixedTTL
	}
	return Expired
}
