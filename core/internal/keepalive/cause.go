package keepalive

import "errors"

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
