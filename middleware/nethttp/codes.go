package httplock

import "github.com/holdfast-go/holdfast/middleware/internal/httpguard"

// Codes of refusals: [Conflict.Code], and the member code of the problem that a client gets. They do not change.
const (
	CodeKeyRequired     = httpguard.CodeKeyRequired     // 400: the request has no key
	CodeKeyInvalid      = httpguard.CodeKeyInvalid      // 400: the key is too long, or there are several
	CodeBodyUnreadable  = httpguard.CodeBodyUnreadable  // 400: the body ended before its end
	CodeBodyTimeout     = httpguard.CodeBodyTimeout     // 408: the body did not arrive in time
	CodeTooManyBodies   = httpguard.CodeTooManyBodies   // 503: the bodies of other requests take all the memory for bodies
	CodeScopeRequired   = httpguard.CodeScopeRequired   // 401: no user is known for the request
	CodeLockConflict    = httpguard.CodeLockConflict    // 409: another request of the same key is running
	CodeLimitReached    = httpguard.CodeLimitReached    // 429: as many requests of the same key as its semaphore allows are running
	CodeClientGone      = httpguard.CodeClientGone      // 499: the client left before its request could run
	CodeKeyFailed       = httpguard.CodeKeyFailed       // 500: the server could not make the key
	CodeGuardFailed     = httpguard.CodeGuardFailed     // 500: the guard cannot be used like this, by a mistake of the program
	CodeLockUnavailable = httpguard.CodeLockUnavailable // 503: Redis could not be asked
	CodeNotAnswered     = httpguard.CodeNotAnswered     // 503: the handler has not answered, because its context was over

	CodeRequestInProgress = httpguard.CodeRequestInProgress // 409: another request of the same key is running, behind Once
	CodeAlreadyCompleted  = httpguard.CodeAlreadyCompleted  // 409: a request of the same key took effect before
	CodeOutcomeUnknown    = httpguard.CodeOutcomeUnknown    // 409: the outcome of a request of the same key is unknown
	CodePayloadTooLarge   = httpguard.CodePayloadTooLarge   // 413: the body is larger than what can be compared
	CodeKeyReused         = httpguard.CodeKeyReused         // 422: the key belongs to another request
	CodeTooEarly          = httpguard.CodeTooEarly          // 425: the request came in TLS early data
	CodeTooManyKeys       = httpguard.CodeTooManyKeys       // 429: the scope has as many keys as are allowed
)

// StatusClientGone is the status of a request whose client left before it could run. It is nginx's.
const StatusClientGone = httpguard.StatusClientGone

// Header fields of the client's key, and of a replay.
const (
	HeaderIdempotencyKey = httpguard.HeaderIdempotencyKey // Idempotency-Key, unless WithKeyHeader names another
	MarkerField          = httpguard.MarkerField          // Idempotency-Replayed
)
