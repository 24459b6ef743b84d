package script

import "time"

// Refusal is why an attempt may not begin, or a record cannot be resolved or forgotten. A *Refusal is an error, so that it can be the field
// Refused of a Result.
type Refusal struct {
	Kind       RefusalKind
	Record     Record        // of Completed, OutcomeUnknown and Changed; zero for other kinds
	RetryAfter time.Duration // of TooManyRecords and InProgress; 0 for other kinds
	ServerTime time.Time     // of TooEarly and TooLate; zero for other kinds
}

// RefusalKind is the reason of a refusal.
type RefusalKind int

// The reasons of refusals. Package core takes every other value for fingerprintMismatch.
const (
	Completed           RefusalKind = iota + 1 // a run has completed before
	OutcomeUnknown                             // a run has an unknown outcome, which has to be resolved first
	InProgress                                 // an attempt is running, so the record cannot be resolved, or forgotten without force
	fingerprintMismatch                        // the record was made for another fingerprint
	TooManyRecords                             // the group has as many records as it may have
	TooEarly                                   // the server's clock has not reached the window
	TooLate                                    // the server's clock is past the window
	Changed                                    // the record is not as the operator saw it
)

// Error returns a text for logs. The API has an error type or value for each kind.
func (r *Refusal) Error() string { return "the attempt is refused" }

// Settled returns true if no attempt will begin unless an operator decides so. Then waiting helps no caller of the key.
func (r *Refusal) Settled() bool {
	return r.Kind == Completed || r.Kind == OutcomeUnknown && r.Record.State == "unknown"
}
