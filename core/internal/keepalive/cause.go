package keepalive

import "errors"

// Cause is why a lease has ended without its holder. It is an error, so that the answer to a renewal can carry it.
type Cause int

const (
	Expired     Cause = iota + 1 // no renewal has succeeded in time
	FixedTTL                     // the TTL of a lease without renewals has expired
	HeldTooLong                  // the longest time of a hold has passed
	Gone                         // the hold is not in Redis any more
	Replaced                     // another owner has the lock in Redis
	Taken                        // expired, gone or replaced in Redis: it is not known which
)

// Error returns the cause in a few words.
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

// IsCause reports whether the error of a renewal says that the lease was lost.
func IsCause(err error) bool {
	var c Cause
	return errors.As(err, &c)
}
