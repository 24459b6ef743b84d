package middleware

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// Codes of refusals. They are part of the interface that an HTTP API has with its clients and do not change.
const (
	CodeKeyRequired     = "key-required"     // 400: the request has no key
	CodeKeyInvalid      = "key-invalid"      // 400: the key is too long, or there are several
	CodeScopeRequired   = "scope-required"   // 401: nobody is known on whose behalf the request comes
	CodeLockConflict    = "lock-conflict"    // 409: another request of the same key is running
	CodeClientGone      = "client-gone"      // 499: the client left before its request could run
	CodeKeyFailed       = "key-failed"       // 500: the server could not make the key
	CodeLockUnavailable = "lock-unavailable" // 503: Redis could not be asked
)

// StatusClientGone is the status of a request whose client left before it could run. It is nginx's.
const StatusClientGone = 499

// ErrClientGone says that the client left before its request could run.
var ErrClientGone = errors.New("holdfast: client gone")

// Conflict is why a request was refused. It is an error too; the key is in its text by its hash only, unless
// Cause came from a key function that says more.
type Conflict struct {
	// Status of the answer.
	Status int
	// Code is one of the constants of this package.
	Code string
	// Type is the URI of the code: the problem base and the code, or about:blank.
	Type string
	// RetryAfter is when another attempt makes sense, in whole seconds; 0 if there is nothing to say.
	RetryAfter time.Duration
	// Retryable tells whether the same request may succeed later.
	Retryable bool
	// KeyHash identifies the key; it is empty if there was none.
	KeyHash string
	// Waited is how long the request waited for the lock.
	Waited time.Duration
	// Cause is the error behind the refusal. It is for logs, not for clients.
	Cause error
}

// Error returns the code and the text of the cause.
func (c *Conflict) Error() string {
	if c.Cause == nil {
		return "holdfast: request refused: " + c.Code
	}
	return "holdfast: request refused: " + c.Code + ": " + c.Cause.Error()
}

// Unwrap returns the cause.
func (c *Conflict) Unwrap() error { return c.Cause }

// conflict fills in what follows from the code and the cause.
func (c *Config) conflict(code string, cause error) *Conflict {
	v := verdicts[code]
	conflict := &Conflict{Status: v.status, Code: code, Type: blankType, Retryable: v.retryable, Cause: cause}
	if c.ProblemBase != "" {
		conflict.Type = c.ProblemBase + code
	}
	switch code {
	case CodeLockConflict:
		conflict.Status = c.ConflictStatus
		conflict.RetryAfter = afterLease(cause)
	case CodeLockUnavailable:
		conflict.RetryAfter = afterOutage()
	}
	return conflict
}

// requestCode judges an error of the key or of the body.
func requestCode(ctx context.Context, err error) string {
	switch {
	case errors.Is(err, ErrKeyRequired):
		return CodeKeyRequired
	case errors.Is(err, ErrKeyInvalid):
		return CodeKeyInvalid
	case errors.Is(err, ErrScopeRequired):
		return CodeScopeRequired
	case errors.Is(err, ErrClientGone), gone(ctx):
		return CodeClientGone
	}
	return CodeKeyFailed
}

// lockCode judges an error of the lock. The order matters: whoever waits until Redis thaws, or leaves while it
// is frozen, gets an error that is [core.ErrNotAcquired] as well.
func lockCode(ctx context.Context, err error) string {
	switch {
	case gone(ctx):
		return CodeClientGone
	case errors.Is(err, core.ErrUnavailable):
		return CodeLockUnavailable
	case errors.Is(err, core.ErrNotAcquired):
		return CodeLockConflict
	}
	return CodeLockUnavailable
}

// gone reports whether the client left. A deadline is the server's doing: the client is still there.
func gone(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }
