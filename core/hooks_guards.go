package core

import "time"

// Work is what came to a guard: a request, a tick of a schedule, a task, a message.
type Work struct {
	// Place is where: "http", "rpc", "cron", "task" or "message".
	Place string
	// Label is its kind, one of few: the route of a request, the name of a job, the type of a task, the consumer of a message. It is "" if the guard
	// knows none.
	Label string
	// KeyHash is that of the lines of the log. Within a run that has a record, [KeyHash] returns it too. It is "" without a key.
	KeyHash string
	// Due is the tick, or when the message was sent; zero if the guard knows neither.
	Due time.Time
}

// RunStart describes work that a guard lets run.
type RunStart struct {
	Work
	// Token is the fencing token; 0 if the run is unguarded.
	Token int64
	// Attempt counts the runs for the key, from 1; 0 without a record.
	Attempt int
	// Waited is the time from the arrival to the run.
	Waited time.Duration
}

// RunEnd describes a run that has ended.
type RunEnd struct {
	Work
	// Token and Attempt are those of [RunStart].
	Token   int64
	Attempt int
	// State is what was to be recorded: [StateCompleted], [StateUnknown], or [StateNone] if nothing was.
	State State
	// Took is the duration of the run.
	Took time.Duration
	// Panicked is true if the run ended with a panic or with [runtime.Goexit]. Err is nil then, unless the guard has more to tell.
	Panicked bool
	// Err is why the run failed, by the rules of the guard; nil if it succeeded.
	Err error
}

// NotRun describes work that a guard does not let run.
type NotRun struct {
	Work
	// Reason is why, in a word of the place: the code of an HTTP problem, a reason of package cronlock or package asynqlock.
	// It is [ReasonReplayed] if an earlier run has completed and its result was returned.
	Reason string
	// Attempt is the number of the run whose result was returned; 0 if there is none.
	Attempt int
	// Waited is the time from the arrival to the decision.
	Waited time.Duration
	// RetryAfter is when the work will come again, or may; 0 if unknown, or if it does not.
	RetryAfter time.Duration
	// Err is the reason as an error. It is nil if the caller got the result of an earlier run. A tick that another replica has
	// run has a [CompletedError].
	Err error
}

// ReasonReplayed is the Reason of a [NotRun] whose caller got the result of an earlier run.
const ReasonReplayed = "replayed"

// Incident describes what went wrong with work although it runs, or has run.
type Incident struct {
	Work
	// Kind is what went wrong.
	Kind IncidentKind
	// Err tells more.
	Err error
}

// IncidentKind is what went wrong in an [Incident].
type IncidentKind string

// The kinds of incidents. A place may have more.
const (
	// IncidentUnguarded is a run that began without Redis, because its guard fails open.
	IncidentUnguarded IncidentKind = "unguarded"
	// IncidentLost is a run whose lease was lost before it ended.
	IncidentLost IncidentKind = "lost"
	// IncidentUnrecorded is a run whose end Redis has not confirmed. It is retried in the background.
	IncidentUnrecorded IncidentKind = "unrecorded"
	// IncidentOverrun is a run that goes on long after it was told to end. Its lease is not renewed any more.
	IncidentOverrun IncidentKind = "overrun"
)
