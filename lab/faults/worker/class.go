package worker

import (
	"context"
	"errors"
	"strings"

	"github.com/holdfast-go/holdfast/core"
)

// Classes of errors, for [history.Event].
const (
	Held          = "held"
	Cancelled     = "cancelled" // the wait for a lock that is held
	Unavailable   = "unavailable"
	NotReplicated = "not replicated"
	NotHeld       = "not held"
	Over          = "over" // not held either, but the lease had ended before, so that Redis was not asked
	Closed        = "closed"
	InProgress    = "in progress"
	Completed     = "completed"
	OutcomeOpen   = "outcome unknown"
	Stale         = "stale"
	Upgrade       = "upgrade"
	Vacant        = "vacant"
	WrongType     = "wrong type"
	Ended         = "context ended"
	Other         = "other"
)

// The ways to lose a lease.
const (
	Expired = "expired"
	Taken   = "taken"
	TooLong = "held too long"
)

// Class tells what kind of error it is. What comes first is the more telling.
func Class(err error) string {
	if err == nil {
		return ""
	}
	if errors.Is(err, core.ErrNotAcquired) && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return Cancelled
	}
	for _, known := range []struct {
		err   error
		class string
	}{
		{core.ErrStale, Stale},
		{core.ErrNotReplicated, NotReplicated},
		{core.ErrUnavailable, Unavailable},
		{core.ErrNotAcquired, Held},
		{core.ErrNotHeld, NotHeld},
		{core.ErrClosed, Closed},
		{core.ErrInProgress, InProgress},
		{core.ErrCompleted, Completed},
		{core.ErrOutcomeUnknown, OutcomeOpen},
		{core.ErrUpgrade, Upgrade},
		{core.ErrNoLeader, Vacant},
		{core.ErrWrongType, WrongType},
		{core.ErrLeaseLost, loss(err)},
		{context.Canceled, Ended},
		{context.DeadlineExceeded, Ended},
	} {
		if errors.Is(err, known.err) {
			return known.class
		}
	}
	return Other
}

// Released is the class of what an unlock returned. The context is that of the lease, and has ended for its cause.
func Released(err error, lease context.Context) string {
	class := Class(err)
	if class == NotHeld && Class(context.Cause(lease)) != NotHeld {
		return Over
	}
	return class
}

// loss tells how a lease was lost, which is in the text only.
func loss(err error) string {
	switch text := err.Error(); {
	case strings.Contains(text, "TTL expired"):
		return Expired
	case strings.Contains(text, "WithMaxHold"):
		return TooLong
	default:
		return Taken
	}
}

// detail is the text of an error whose class does not say enough.
func detail(err error) string {
	if c := Class(err); c != Other && c != Unavailable {
		return ""
	}
	return err.Error()[:min(len(err.Error()), 200)]
}
