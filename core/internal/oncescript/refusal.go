package oncescript

import "time"

// Refusal is why an attempt may not begin, or a record cannot be resolved.
type Refusal struct {
	Kind       RefusalKind
	Record     Record        // of alreadyCompleted and outcomeUnknown
	RetryAfter time.Duration // of tooManyRecords, tooManyBytes and inProgress
	ServerTime time.Time     // of tooEarly and tooLate
}

// RefusalKind is the reason of a refusal.
type RefusalKind int

const (
	Completed RefusalKind = iota + 1
	OutcomeUnknown
	InProgress
	fingerprintMismatch
	TooManyRecords
	TooManyBytes
	TooEarly
	TooLate
)

// Error is for logs: the API has an error of its own for each kind.
func (r *Refusal) Error() string { return "the attempt is refused" }
