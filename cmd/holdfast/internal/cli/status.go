package cli

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/supervise"
	"github.com/holdfast-go/holdfast/core"
)

// The exit statuses of holdfast itself; otherwise the command's status is returned. Most come from sysexits.h.
const (
	// StatusAbsent is for an operator's command that has found nothing, or nothing to change.
	StatusAbsent = 1
	// StatusUsage is for wrong arguments.
	StatusUsage = 64
	// StatusUnavailable is for a Redis that does not answer, or refuses.
	StatusUnavailable = 69
	// StatusTooManyFiles is for a connection to Redis that this process, or its host, has no file descriptor for.
	StatusTooManyFiles = 71
	// StatusUnwritten is for output that cannot be written, although all else has succeeded.
	StatusUnwritten = 74
	// StatusNotAcquired is for a lock that another holder has, unless -E says otherwise, and for a record or a lock that has
	// changed while its operator decided.
	StatusNotAcquired = 75
	// StatusLost is for a command that was ended because the lock was lost.
	StatusLost = supervise.StatusLost
	// StatusCannotRun is for a command that exists but cannot be executed.
	StatusCannotRun = 126
	// StatusNotFound is for a command that does not exist.
	StatusNotFound = 127
)

// statusError is an error with an exit status. Its text may be empty: then nothing is printed.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return e.text }

// exitWith returns an error with a status and without a text, or nil for 0.
func exitWith(status int) error {
	if status == 0 {
		return nil
	}
	return &statusError{status: status}
}

func usageError(format string, args ...any) error {
	return &statusError{StatusUsage, fmt.Sprintf(format, args...)}
}

// statusOf returns the exit status of an error.
func statusOf(err error) int {
	var own *statusError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &own):
		return own.status
	case errors.Is(err, core.ErrInvalidName), errors.Is(err, core.ErrInvalidOption):
		return StatusUsage
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return StatusTooManyFiles
	case errors.Is(err, core.ErrUnavailable): // before the others: a wait that ended in an outage was not granted either
		return StatusUnavailable
	case errors.Is(err, core.ErrNotAcquired), errors.Is(err, core.ErrInProgress), errors.Is(err, core.ErrChanged):
		return StatusNotAcquired
	case errors.Is(err, core.ErrLeaseLost), errors.Is(err, core.ErrOutcomeUnknown), errors.Is(err, core.ErrStale):
		return StatusLost
	}
	return StatusUnavailable
}
