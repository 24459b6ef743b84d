package httplock

import "github.com/holdfast-go/holdfast/middleware"

// Codes of refusals: [Conflict.Code], and the member code of the problem that a client gets. They do not change.
const (
	CodeKeyRequired     = middleware.CodeKeyRequired     // 400: the request has no key
	CodeKeyInvalid      = middleware.CodeKeyInvalid      // 400: the key is too long, or there are several
	CodeBodyUnreadable  = middleware.CodeBodyUnreadable  // 400: the body ended before its end
	CodeBodyTimeout     = middleware.CodeBodyTimeout     // 408: the body did not arrive in time
	CodeTooManyBodies   = middleware.CodeTooManyBodies   // 503: the bodies of other requests take all the memory for bodies
	CodeScopeRequired   = middleware.CodeScopeRequired   // 401: no user is known for the request
	CodeLockConflict    = middleware.CodeLockConflict    // 409: another request of the same key is running
	CodeLimitReached    = middleware.CodeLimitReached    // 429: as many requests of the same key as its semaphore allows are running
	CodeClientGone      = middleware.CodeClientGone      // 499: the client left before its request could run
	CodeKeyFailed       = middleware.CodeKeyFailed       // 500: the server could not make the key
	CodeGuardFailed     = middleware.CodeGuardFailed     // 500: the guard cannot be used like this, by a mistake of the program
	CodeLockUnavailable = middleware.CodeLockUnavailable // 503: Redis could not be asked
	CodeNotAnswered     = middleware.CodeNotAnswered     // 503: the handler has not answered, because its context was over

	CodeRequestInProgress = middleware.CodeRequestInProgress // 409: another request of the same key is running, behind Once
	CodeAlreadyCompleted  = middleware.CodeAlreadyCompleted  // 409: a request of the same key took effect before
	CodeOutcomeUnknown    = middleware.CodeOutcomeUnknown    // 409: the outcome of a request of the same key is unknown
	CodePayloadTooLarge   = middleware.CodePayloadTooLarge   // 413: the body is larger than what can be compared
	CodeKeyReused         = middleware.CodeKeyReused         // 422: the key belongs to another request
	CodeTooEarly          = middleware.CodeTooEarly          // 425: the request came in TLS early data
	CodeTooManyKeys       = middleware.CodeTooManyKeys       // 429: the scope has as many keys as are allowed
)

// StatusClientGone is the status of a request whose client left before it could run. It is nginx's.
const StatusClientGone = middleware.StatusClientGone

// Header fields of the client's key, and of a replay.
const (
	HeaderIdempotencyKey = middleware.HeaderIdempotencyKey // Idempotency-Key, unless WithKeyHeader names another
	MarkerField          = middleware.MarkerField          // Idempotency-Replayed
)
