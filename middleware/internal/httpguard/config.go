package httpguard

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// Config is how an adapter sets up the engine; applications use the adapter's options. Start from
// [DefaultConfig], [OnceConfig] or [IdempotentConfig].
type Config struct {
	// Methods are the request methods that are guarded. Defaults to nil: all but GET, HEAD, OPTIONS, TRACE; POST and
	// PATCH for Idempotent.
	Methods []string
	// OptionalKey lets requests without a key pass unguarded. Defaults to false.
	OptionalKey bool
	// KeySecret makes hashes of keys that cannot be guessed without the secret. Defaults to none.
	KeySecret []byte
	// Wait bounds how long a request waits for the one before it; 0 asks once. Defaults to 250 ms for Exclusive,
	// because a client that sends one request after the other may be faster than the release of the lock behind the
	// answer. Defaults to 0 for others.
	Wait time.Duration
	// AskTimeout bounds how long Redis may take to answer a request that does not wait, or waits for less than that.
	// With FailOpen, a request that waits for longer gives Redis all its wait, 5 s at most. Defaults to 1 s.
	AskTimeout time.Duration
	// FinishTimeout bounds how long the end of a run waits for Redis. Defaults to 2 s.
	FinishTimeout time.Duration
	// WaitersPerKey and Waiters bound how many requests wait at this guard in this process, and one owner has half of
	// them at most. One more request asks once. Default to 16 and 1024.
	WaitersPerKey, Waiters int
	// BodyLimit is how many bytes of body are read before Redis is asked; 0 reads none. Defaults to 64 KiB, 1 MiB for
	// Idempotent.
	BodyLimit int64
	// BodyMemory bounds the bytes of all bodies that this guard has buffered in this process. One owner has half of them at
	// most, so it has to be more than twice BodyLimit. Defaults to 64 MiB.
	BodyMemory int64
	// StrictBody refuses larger bodies with 413. Defaults to false, true for Idempotent.
	StrictBody bool
	// Lock are options of the lock or lease. Defaults to none: those of the strategy and its client apply.
	Lock []core.LockOption
	// FailOpen lets requests run unguarded while Redis cannot be asked. It does not apply while Redis refuses.
	// Defaults to false.
	FailOpen bool
	// Logger gets failures that clients do not cause. Defaults to nil: the logger of the client of the locks.
	Logger *slog.Logger
	// Hooks are called with what happens to requests. Defaults to none.
	Hooks Hooks

	Records // of Once and Idempotent

	err error // of the first option that cannot be applied
}

// Records is the configuration of Once and Idempotent beyond that of all guards. It is zero for Exclusive.
type Records struct {
	// Retention is how long a record is kept. Defaults to 24 h.
	Retention time.Duration
	// RetentionUntil returns the end of the retention, for a request that begins now. If it is not nil, it replaces
	// Retention. Several goroutines may call it at once. Defaults to nil.
	RetentionUntil func(now time.Time) time.Time
	// FailurePolicy says what a 5xx, a panic and a lost lease leave. Defaults to [core.RetryFailures].
	FailurePolicy core.FailurePolicy
	// Completion judges how a handler ended; it returns [Auto] for the default judgement. Defaults to nil: always the
	// default.
	Completion func(Outcome) Disposition
	// CompleteRefusals counts a 4xx as completed unless it is temporary. Defaults to false, true for Idempotent: the
	// same request would be refused again.
	CompleteRefusals bool
	// Detached keeps the end of the request's context from the handler. Defaults to false.
	Detached bool
	// Replay answers a request with the recorded answer if an earlier one completed. Defaults to false, true for
	// Idempotent.
	Replay bool
	// RecordLimit bounds the body that is held back and recorded. Defaults to 256 KiB.
	RecordLimit int
	// Quota bounds how many records the keys of one scope may have; 0 is none. Defaults to 0.
	Quota int
	// Scoped is true if keys have a scope, as those of Idempotent do.
	Scoped bool
	// Codec encrypts recorded answers. Defaults to nil: they are stored in plain text.
	Codec Codec
	// LateAnswers keeps a run open until its request has ended, if its handler has answered nothing: see
	// [Run.FinishLate]. Defaults to false: only for Echo's handlers.
	LateAnswers bool
	// CompareHeader are the names of header fields that are compared too. Defaults to none.
	CompareHeader []string
	// Compare refuses another request with the same key. Defaults to false, true for Idempotent.
	Compare bool
	// Fingerprint returns the part of a payload that is compared, beside method and path. Defaults to nil: all of it.
	Fingerprint func(Payload) []byte
	// KeyHeader is the header field of the key of Idempotent. Defaults to [HeaderIdempotencyKey].
	KeyHeader string
}

// Hooks are called with what happens to guarded requests. Each may be nil. They run on the request's goroutine, except
// at the end of a run that is answered late, so they must be fast. A panic in a hook ends the run, and continues.
// Later versions may add fields to the structs.
type Hooks struct {
	// Acquired is called when a request may run, before the handler.
	Acquired func(ctx context.Context, acquired Acquired)
	// Replayed is called for each request that gets a recorded answer.
	Replayed func(ctx context.Context, replayed Replayed)
	// Finished is called when the end of a run behind Once or Idempotent was recorded, or when that has failed.
	Finished func(ctx context.Context, finished Finished)
	// Refused is called for each request that does not reach the handler. The code is the reason.
	Refused func(ctx context.Context, conflict *Conflict)
	// Failed is called when a request runs unguarded because of FailOpen, when a request has lost its lease while it
	// ran, and when its end could not be recorded.
	Failed func(ctx context.Context, failure Failure)
}

// Acquired describes a request that may run.
type Acquired struct {
	KeyHash string
	// Token is the fencing token.
	Token int64
	// Attempt counts the runs for this key, from 1; 0 for Exclusive.
	Attempt int
	// Waited is the time from the first request to Redis to the grant.
	Waited time.Duration
}

// Replayed describes a request that gets a recorded answer.
type Replayed struct {
	KeyHash string
	// Attempt is the number of the attempt with that answer.
	Attempt int
	// Waited is the time from the first request to Redis to the answer.
	Waited time.Duration
}

// Finished describes the end of a run.
type Finished struct {
	KeyHash string
	Attempt int
	// Held is the duration of the run.
	Held time.Duration
	// Disposition is what was to be recorded.
	Disposition Disposition
	// Err is why the end was not recorded, or not yet; nil if it was.
	Err error
}

// Failure describes a request that ran with less than its guard promises.
type Failure struct {
	KeyHash string
	// Operation is the step that failed: "begin", "run", "finish", or "answer" for an answer that was written after
	// the run was recorded without one.
	Operation string
	// Err is [core.ErrLeaseLost], or the reason why Redis could not be asked or did not record the end.
	Err error
}

// DefaultConfig returns the defaults of Exclusive.
func DefaultConfig() Config {
	return Config{
		Wait: 250 * time.Millisecond, AskTimeout: time.Second, FinishTimeout: 2 * time.Second, WaitersPerKey: 16, Waiters: 1024,
		BodyLimit: 64 << 10, BodyMemory: 64 << 20,
	}
}

// OnceConfig returns the defaults of Once.
func OnceConfig() Config {
	c := DefaultConfig()
	c.Wait = 0
	c.Records = Records{
		Retention: 24 * time.Hour, RecordLimit: 256 << 10, KeyHeader: HeaderIdempotencyKey,
	}
	return c
}

// IdempotentConfig returns the defaults of Idempotent.
func IdempotentConfig() Config {
	c := OnceConfig()
	c.Methods = []string{http.MethodPost, http.MethodPatch}
	c.BodyLimit, c.StrictBody = 1<<20, true
	c.Replay, c.Compare, c.CompleteRefusals, c.Scoped = true, true, true, true
	return c
}

// safe are the methods of RFC 9110, section 9.2.1: they change nothing that needs a lock.
var safe = []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace}

func (c *Config) guards(method string) bool {
	if c.Methods == nil {
		return !slices.Contains(safe, method)
	}
	// A handler that folds the case of the method does the same for "post" as for POST.
	return slices.ContainsFunc(c.Methods, func(guarded string) bool { return strings.EqualFold(guarded, method) })
}
