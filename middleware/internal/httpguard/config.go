package httpguard

import (
	"net/http"
	"slices"
	"strings"
	"time"

	guards "github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/httprecord"
)

// Config is what the options of a guard amount to. Start from [ExclusiveConfig], [OnceConfig] or [IdempotentConfig].
type Config struct {
	// The options of core and those of all guards.
	guards.Config
	// Methods are the request methods that are guarded. Nil is all but GET, HEAD, OPTIONS, TRACE.
	Methods []string
	// WaitersPerKey and Waiters bound how many requests wait at this guard in this process.
	WaitersPerKey, Waiters int
	// BodyLimit is how many bytes of body are read before Redis is asked; 0 reads none.
	BodyLimit int64
	// BodyMemory bounds the bytes of all bodies that this guard has buffered in this process.
	BodyMemory int64
	// StrictBody refuses larger bodies with 413.
	StrictBody bool
	Records    // of Once and Idempotent
	place      guards.Place
	err        error // of the first option that cannot be applied
}

// Records is the configuration of Once and Idempotent beyond that of all guards. It is zero for Exclusive.
type Records struct {
	// RetentionUntil returns the end of the retention, for a request that begins now. If it is not nil, it replaces
	// Retention.
	RetentionUntil func(now time.Time) time.Time
	// Completion judges how a handler ended; it returns [Auto] for the default judgement. Nil is always the default.
	Completion func(Handled) Disposition
	// CompleteRefusals counts a 4xx as completed unless it is temporary.
	CompleteRefusals bool
	// Detached keeps the end of the request's context from the handler.
	Detached bool
	// Replay answers a request with the recorded answer if an earlier one completed.
	Replay bool
	// Scoped is true if keys have a scope, as those of Idempotent do.
	Scoped bool
	// Codec encrypts recorded answers. Nil stores them in plain text.
	Codec Codec
	// CompareHeader are the names of header fields that are compared too.
	CompareHeader []string
	// Compare refuses another request with the same key.
	Compare bool
	// Fingerprint returns the part of a payload that is compared, beside method and path. Nil is all of it.
	Fingerprint func(Payload) []byte
	// KeyHeader is the header field of the key of Idempotent.
	KeyHeader string
}

// exclusiveWait is how long Exclusive waits by default: a client that sends one request after the other may be faster than the
// release of the lock behind the answer.
const exclusiveWait = 250 * time.Millisecond

// ExclusiveConfig returns the defaults of Exclusive.
func ExclusiveConfig() Config {
	c := newConfig(exclusivePlace)
	c.Wait = exclusiveWait
	return c
}

// OnceConfig returns the defaults of Once.
func OnceConfig() Config {
	c := newConfig(oncePlace)
	c.MaxValue, c.KeyHeader = httprecord.MaxBody, HeaderIdempotencyKey
	return c
}

// IdempotentConfig returns the defaults of Idempotent.
func IdempotentConfig() Config {
	c := OnceConfig()
	c.place = idempotentPlace
	c.Methods = []string{http.MethodPost, http.MethodPatch}
	c.BodyLimit, c.StrictBody = 1<<20, true
	c.Replay, c.Compare, c.CompleteRefusals, c.Scoped = true, true, true, true
	return c
}

func newConfig(place guards.Place) Config {
	c := Config{WaitersPerKey: 16, Waiters: 1024, BodyLimit: 64 << 10, BodyMemory: 64 << 20, place: place}
	c.Config, c.err = place.Sort(nil, nil)
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
