package core

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/lockscript"
)

// drift is taken off every TTL: for the millisecond to which Redis rounds, and for clocks that do not run at
// the same rate (NTP slews by up to 500 ppm).
func drift(ttl time.Duration) time.Duration { return 2*time.Millisecond + ttl/1000 }

// keptLease is a [Lease] as its renewer sees it. Why a type of its own: its methods are no part of the API.
type keptLease struct{ *Lease }

func (l keptLease) Hold() *lockscript.Hold                    { return &l.hold }
func (l keptLease) Sender() keepalive.Sender[lockscript.Hold] { return l.protocol }
func (l keptLease) End(cause error)                           { l.end.Set(lossError(cause)) }
func (l keptLease) Lost(cause error)                          { l.keeper.lost(l.Lease, lossError(cause)) }
func (l keptLease) Renewed(err error)                         { l.keeper.renewed(l.Lease, err) }

// lossError returns the [ErrLeaseLost] of a cause.
func lossError(cause error) error {
	var c keepalive.Cause
	errors.As(cause, &c)
	switch c {
	case keepalive.Expired:
		return errExpired
	case keepalive.FixedTTL:
		return errRanOut
	case keepalive.HeldTooLong:
		return errHeldTooLong
	case keepalive.Gone:
		return errGone
	case keepalive.Replaced:
		return errReplaced
	}
	return errTaken
}

// outstanding returns the lease's hold as a server may still have it: for longer than its TTL, if it was extended.
func (l *Lease) outstanding() *lockscript.Hold {
	left := l.keeper.renewer.Outstanding(&l.entry)
	if left == l.hold.TTL {
		return &l.hold
	}
	h := l.hold
	h.TTL = left
	return &h
}
