package httplock

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/httprecord"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// Option configures a guard, of this package or of another framework: the options of this package, and core's that fit,
// such as [core.WithWait] and [core.WithRetention]. An invalid value makes the constructor panic, or return an error with New in
// its name, and so does an option that makes no sense there.
//
// Options of core mean what they mean there, with these limits and defaults:
//   - [core.WithWait] sets how long a request waits for the one before it: at most until its context ends, and until one second
//     before http.Server.WriteTimeout. 0 asks once. A request that waits at [Idempotent] gets the response of the one before it.
//     At [Exclusive] the next request of a sequential client may be faster than the release of its last one, so 0 can refuse
//     such a request. Defaults to 250 ms for Exclusive, 0 for others.
//   - [core.WithRetention] is for records: within that time after its run no second request of its key runs. Defaults to 24 h.
//   - [core.WithFailurePolicy] is about a run that answered 5xx, panicked, crashed, or returned without an answer because its context
//     had ended. With [core.RetryFailures] the next request runs. With [core.HoldFailures] all requests get 409 outcome-unknown
//     until an operator has found out and calls Resolve or Forget of the [Guard]. Defaults to core.RetryFailures.
//   - [core.WithMaxValue] bounds the body that is held back until the record is written, and kept for replays and judges. A larger
//     response is sent as it is written, and not replayed: a request with its key gets 409 already-completed, or status and header
//     again if the status is 4xx. At most 64 MiB. Defaults to 256 KiB. The header takes up to 64 KiB more.
//   - [core.WithQuota] bounds how many records the keys of one scope of [Idempotent] may have at a time, so that a client that sends
//     new keys cannot fill Redis. One more is refused with 429 too-many-keys. Defaults to 0: none.
//
// The Option of all guards is one type, so guards can share a slice of options that all of them take.
type Option = guards.Option

// WithRefusalHandler sets the function that answers every refused request: 400, 401, 409, 503 and all other codes,
// except requests whose client left before they ran. It also answers in place of a handler that has not answered because
// its context was over: 503 not-answered, or what a retry gets. It may change the conflict and call [Refuse] for the writing. If it
// writes nothing, not even a status, the guard calls Refuse: net/http would answer 200 for it. Defaults to Refuse.
func WithRefusalHandler(handler RefusalHandler) Option {
	return newOption("WithRefusalHandler", func(s *settings) { s.Refusal = handler })
}

// RefusalHandler answers a refused request. To flush its answer, use [http.ResponseController].
type RefusalHandler func(w http.ResponseWriter, r *http.Request, conflict *Conflict)

// WithMethods sets the guarded request methods, in upper case. Requests of other methods pass. Defaults to all but
// GET, HEAD, OPTIONS and TRACE; for [Idempotent], POST and PATCH.
func WithMethods(methods ...string) Option {
	methods = append([]string{}, methods...) // not nil, so that none is an error and not the default
	return newOption("WithMethods", func(s *settings) { s.Methods = slices.Clone(methods) })
}

// WithWaiters bounds how many requests wait at this guard at a time in this process: of one key, and of all keys. One
// more is answered at once. One owner gets no more places than are left for others, so half of them at most: see
// [WithBodyMemory]. Defaults to 16 and 1024.
func WithWaiters(perKey, all int) Option {
	return newOption("WithWaiters", func(s *settings) { s.WaitersPerKey, s.Waiters = perKey, all })
}

// WithBodyLimit sets how many bytes of body are read before the lock is asked for, also of a larger body and of one whose
// client waits for 100 Continue. A client that sends the rest of a larger body slowly holds the lock as long as the handler
// lets it. 0 reads none, for a handler that answers before it has read all, as with a CONNECT over HTTP/2, whose body is the
// tunnel: bound the time of its clients by http.Server.ReadTimeout. Defaults to 64 KiB; for Idempotent 1 MiB, which compares
// bodies and refuses larger ones with 413.
func WithBodyLimit(bytes int64) Option {
	return newOption("WithBodyLimit", func(s *settings) { s.BodyLimit = bytes })
}

// WithBodyMemory gives this guard memory of its own for bodies: so many bytes of them are buffered in this process, in total, while
// their requests arrive and run. Beyond it, a request with a body is refused with 503 too-many-bodies. One owner gets no more than
// what is left for others, so half of it at most. The owner is the user or client address in the key, or the scope of an
// Idempotency-Key. Without them, and while a body makes the key, it is the address of the connection, which is the address of the
// proxy if there is one. Slow clients hold what they have sent: bound their time by http.Server.ReadTimeout. It has to be
// more than twice the limit of [WithBodyLimit]. Defaults to 64 MiB for all guards of the process together.
func WithBodyMemory(bytes int64) Option {
	return newOption("WithBodyMemory", func(s *settings) { s.BodyMemory = bytes })
}

// WithAskTimeout sets how long Redis may take to answer a request that does not wait, or waits for less than that.
// With [FailOpen], a request that waits for longer gives Redis all its wait, 5 s at most. 1 ms to 8760 h. Defaults to 1 s.
func WithAskTimeout(limit time.Duration) Option { return guards.WithAskTimeout(limit) }

// WithFinishTimeout sets how long the end of a run waits for Redis to confirm the release or the record, even if the context of
// the request is over. It waits for half of the time at most that the server's WriteTimeout leaves. After that the response is
// sent all the same, and the client of Redis retries in the background. 1 ms to 8760 h. Defaults to 5 s.
func WithFinishTimeout(limit time.Duration) Option { return guards.WithFinishTimeout(limit) }

// FailOpen lets requests run unguarded while Redis cannot be asked. They may run at the same time as others or once
// more, without fencing token and without record; [Degraded] returns true for them. It does not apply if Redis answers
// but refuses, because it is full, or wants other rights or another password. Nor does it apply to a key of which this guard
// knows a run: one in progress in this process, one that had a lease when Redis last answered about the key, until that
// lease ends, or, behind Once and Idempotent, one that has taken effect in this process within ten minutes, or was replayed or
// refused for that here. What ran without Redis does not run again when Redis is back either, and is recorded then. A guard that
// remembers 10,000 keys that ran without Redis or are held, or 500,000 that took effect within ten minutes, refuses further ones. It
// knows nothing of other guards. Defaults to off: requests are refused with 503.
func FailOpen() Option { return guards.FailOpen() }

// OptionalKey lets requests that lack a part of the key pass unguarded. One whose value stands in another spelling or place, where a
// handler might read it, is refused all the same. Defaults to off: they are refused with 400.
func OptionalKey() Option { return guards.OptionalKey() }

// WithKeySecret makes the hashes of keys with a secret (HMAC). Without it, a reader of Redis can guess whose they are,
// because user names and e-mail addresses are few. All instances need the same secret, at least 16 bytes. With another
// secret no record is found. Defaults to none.
func WithKeySecret(secret []byte) Option { return guards.WithKeySecret(secret) }

// The options from here on are for Once and Idempotent; Exclusive keeps no records and refuses them.

// WithRetentionUntil sets the end of a record's retention, as a function of the time at which its request begins: for
// instance midnight, for one order a day. A refused request gets that time as Retry-After. Several goroutines may call
// the function at once. Defaults to none: [core.WithRetention] applies. Of both, the last one counts.
func WithRetentionUntil(until func(now time.Time) time.Time) Option {
	return newOption("WithRetentionUntil", func(s *settings) { s.RetentionUntil = until })
}

// WithCompletion sets a function that judges how a handler ended, unless the handler has called [core.Complete], [core.Release]
// or [core.Hold]. The function gets the body, up to [core.WithMaxValue]. It is not called if a guard further in has refused
// the request. [Auto] leaves it to the default judgement:
//
//   - 2xx and 3xx are completed.
//   - 5xx, 499, panics, reported errors and no answer follow the failure policy.
//   - 401, 403, 407, 408, 409, 421, 423, 425 and 429 are released.
//   - Other 4xx are released by Once and completed by Idempotent.
//
// Defaults to the rules of the package comment.
func WithCompletion(judge func(Handled) Disposition) Option {
	return newOption("WithCompletion", func(s *settings) { s.Completion = judge })
}

// WithDetachedContext keeps the end of the request's context from the handler: work that should not be interrupted
// continues when the client leaves, and after a timeout around the guard. A lost lease still ends it. Defaults to off. With
// [core.HoldFailures], a client that leaves does not end the handler in any case, but a timeout around the guard does.
func WithDetachedContext() Option {
	return newOption("WithDetachedContext", func(s *settings) { s.Detached = guards.FromAnyContext })
}

// WithReplay makes Once answer a second request with the recorded answer of the first, instead of refusing it. Any
// client that can send the key gets that answer, so join the key with the user. Two routes with one key have one effect: join
// [ByRoute], unless that is what you want. The answer of one route is not replayed by another, which refuses the request.
// Idempotent always replays and refuses the option. Defaults to off: it is refused with 409.
func WithReplay() Option {
	return newOption("WithReplay", func(s *settings) { s.Replay = true })
}

// WithCodec sets what encrypts recorded answers, for instance [NewAESGCM]. If the codec can no longer decrypt an answer, it is not
// replayed: the request is refused with 409 already-completed. Nil is an error: without a codec, a wrong key would leave
// answers in plain text. Defaults to none.
func WithCodec(codec Codec) Option {
	return guards.Own("httplock.WithCodec", func(s *settings) error {
		if s.Codec = codec; guards.IsNil(codec) {
			return errors.New("holdfast: WithCodec: the codec is nil")
		}
		return nil
	})
}

// WithFingerprint sets which part of a request is compared with an earlier one with the same key. The
// operation is always compared: method, host of the route, and path, both as it came in and behind
// [net/http.StripPrefix]. Another request is refused with 422. Nil is all of it: query, content type, content
// encoding and body, of a form its fields, of a multipart body its parts. A body larger than [WithBodyLimit] cannot be
// compared and is refused with 413. Nor can one that was read in front of the guard: it is refused with 500 guard-failed.
// Once compares nothing without this option. Defaults to all of it for Idempotent.
func WithFingerprint(of func(Payload) []byte) Option {
	return newOption("WithFingerprint", func(s *settings) { s.Compare, s.StrictBody, s.Fingerprint = true, true, of })
}

// WithComparedHeader adds header fields to what is compared of a request, for operations that a field distinguishes:
// X-HTTP-Method-Override, X-Amz-Target, SOAPAction. They are also in [Payload.Header], for the function of [WithFingerprint].
// Defaults to none.
func WithComparedHeader(names ...string) Option {
	names = slices.Clone(names)
	return newOption("WithComparedHeader", func(s *settings) {
		for _, name := range names {
			s.CompareHeader = append(slices.Clip(s.CompareHeader), http.CanonicalHeaderKey(name))
		}
		slices.Sort(s.CompareHeader)
		s.CompareHeader = slices.Compact(s.CompareHeader)
	})
}

// WithKeyHeader sets the header field that Idempotent reads the key from. Defaults to Idempotency-Key.
func WithKeyHeader(name string) Option {
	return newOption("WithKeyHeader", func(s *settings) { s.KeyHeader = name })
}

// WithMarkerField sets the header field that marks a replay, whose value is "true". Defaults to Idempotency-Replayed, [MarkerField].
func WithMarkerField(name string) Option {
	return newOption("WithMarkerField", func(s *settings) { s.Marker = name })
}

func newOption(name string, apply func(*settings)) Option {
	return guards.Own("httplock."+name, func(s *settings) error {
		apply(s)
		return nil
	})
}

// settings is what the options of a guard amount to, see there.
type settings struct {
	guards.Config       // the options of core and of all guards
	err           error // of the options

	Refusal                RefusalHandler
	Methods                []string // nil is all but GET, HEAD, OPTIONS, TRACE
	WaitersPerKey, Waiters int
	BodyLimit              int64
	BodyMemory             int64
	StrictBody             bool // larger bodies are refused with 413

	// Of Once and Idempotent. They are zero for Exclusive.
	RetentionUntil   func(now time.Time) time.Time // nil: Retention counts
	Completion       func(Handled) Disposition
	CompleteRefusals bool // a 4xx counts as completed, unless it is temporary
	Detached         guards.Detachment
	Replay           bool
	Scoped           bool  // keys have a scope, as with Idempotent
	Codec            Codec // nil: plain text
	Compare          bool  // another request with the same key is refused
	CompareHeader    []string
	Fingerprint      func(Payload) []byte // nil: all of the payload
	KeyHeader        string
	Marker           string
}

// exclusiveWait is how long Exclusive waits by default: a client that sends one request after the other may be faster than the
// release of the lock behind the answer.
const exclusiveWait = 250 * time.Millisecond

func exclusiveSettings(opts ...Option) settings {
	return defaults().with(exclusivePlace, exclusiveWait, 0, opts)
}

func onceSettings(opts ...Option) settings {
	return defaults().with(oncePlace, 0, httprecord.MaxBody, opts)
}

func idempotentSettings(opts ...Option) settings {
	s := defaults()
	s.Methods = []string{http.MethodPost, http.MethodPatch}
	s.BodyLimit, s.StrictBody = 1<<20, true
	s.Replay, s.Compare, s.CompleteRefusals, s.Scoped = true, true, true, true
	return s.with(idempotentPlace, 0, httprecord.MaxBody, opts)
}

func defaults() settings {
	return settings{
		Refusal: Refuse, WaitersPerKey: 16, Waiters: 1024, BodyLimit: 64 << 10, BodyMemory: commonBodyMemory,
		KeyHeader: HeaderIdempotencyKey, Marker: MarkerField,
	}
}

// with returns the settings with the options of a place, in their order. The first error is the constructor's.
func (s settings) with(place guards.Place, wait time.Duration, maxValue int, opts []Option) settings {
	sorted, err := guards.Sort(place, opts, &s)
	if sorted.LastGiven("core.WithRetention", "httplock.WithRetentionUntil") == "core.WithRetention" {
		s.RetentionUntil = nil
	}
	if !sorted.Given("core.WithWait") {
		sorted.Wait = wait
	}
	if !sorted.Given("core.WithMaxValue") {
		sorted.MaxValue = maxValue
	}
	if s.Detached == guards.Attached && sorted.FailurePolicy == core.HoldFailures {
		s.Detached = guards.FromClient
	}
	s.Config, s.err = sorted, err
	return s
}

// forEngine returns what the engine has to know. A request keeps its lease until its handler returns.
func (s *settings) forEngine() guards.Config {
	config := s.Config
	config.ZombieGrace = 0
	return config
}

// check finds what is wrong for any guard.
func (c *settings) check() error {
	switch {
	case c.err != nil:
		return c.err
	case c.Refusal == nil:
		return errors.New("holdfast: WithRefusalHandler: the handler is nil")
	case c.Methods != nil && len(c.Methods) == 0:
		return errors.New("holdfast: no methods: nothing would be guarded")
	case slices.Contains(c.Methods, ""):
		return errors.New("holdfast: a method is empty")
	case slices.ContainsFunc(c.Methods, func(m string) bool { return m != strings.ToUpper(m) }):
		return fmt.Errorf("holdfast: methods %q: they are in upper case", c.Methods)
	case c.WaitersPerKey < 0 || c.Waiters < 0:
		return fmt.Errorf("holdfast: negative number of waiters: %d for a key, %d at all", c.WaitersPerKey, c.Waiters)
	case c.BodyLimit < 0:
		return fmt.Errorf("holdfast: negative body limit: %d", c.BodyLimit)
	case c.BodyMemory < 2*smallestPiece:
		return fmt.Errorf("holdfast: body memory of %d bytes: %d are needed at least", c.BodyMemory, 2*smallestPiece)
	case c.BodyLimit >= c.BodyMemory/2: // with the byte behind the limit
		return fmt.Errorf("holdfast: body memory of %d bytes, body limit of %d: the memory has to be more than twice the limit, "+
			"because one user gets half of it at most", c.BodyMemory, c.BodyLimit)
	}
	return seal.CheckOptions(c.Lock...)
}

// checkOnce finds what is wrong for Once and Idempotent.
func (c *settings) checkOnce() error {
	switch {
	case c.MaxValue > mostRecorded:
		return fmt.Errorf("%w: WithMaxValue(%d): a response of %d bytes can be recorded", core.ErrInvalidOption, c.MaxValue, mostRecorded)
	case !httprecord.FieldName.MatchString(c.KeyHeader):
		return fmt.Errorf("holdfast: key header %q is no name of a header field", c.KeyHeader)
	case !httprecord.FieldName.MatchString(c.Marker):
		return fmt.Errorf("holdfast: WithMarkerField(%q): no name of a header field", c.Marker)
	case len(c.CompareHeader) > 0 && !c.Compare:
		return errors.New("holdfast: WithComparedHeader with Once: nothing is compared without WithFingerprint")
	case slices.ContainsFunc(c.CompareHeader, func(name string) bool { return !httprecord.FieldName.MatchString(name) }):
		return fmt.Errorf("holdfast: compared header: of %q one is no name of a header field", c.CompareHeader)
	case c.Compare && c.Fingerprint == nil && c.BodyLimit == 0:
		return errors.New("holdfast: body limit 0: bodies that are not read cannot be compared")
	}
	digest := core.WithFingerprint(make([]byte, sha256.Size)) // each request has one, which counts
	if err := seal.CheckOnceOptions(append(c.onceOptions(), digest)...); err != nil {
		return err
	}
	return c.check()
}

const (
	// mostRecorded bounds the body that can be recorded: all of them lie in Redis's memory.
	mostRecorded = 64 << 20
	// recordedHeader is how much a record may have beside the body.
	recordedHeader = 64 << 10
)

// onceOptions are the options of the records.
func (c *settings) onceOptions() []core.OnceOption {
	options := append(slices.Clip(c.Once), core.WithMaxValue(c.MaxValue+recordedHeader), core.WithWait(0))
	if c.listed() {
		options = append(options, core.WithGroup())
	}
	return options
}

// listed reports whether the records of a scope can be listed: where they are counted, and where an operator may have to
// look for records of unknown outcome. Other guards save the list.
func (c *settings) listed() bool {
	return c.Scoped && (c.Given("core.WithQuota") || c.FailurePolicy == core.HoldFailures)
}

// untilThen returns for how long a record is kept by RetentionUntil.
func (c *settings) untilThen(now time.Time) time.Duration {
	return max(c.RetentionUntil(now).Sub(now).Truncate(time.Millisecond), shortestRetention)
}

// shortestRetention is the retention of a record whose time is over already when it begins.
const shortestRetention = time.Second

// keptUntilReturned is the reason for which no guard of requests lets go of a lease early.
const keptUntilReturned = "a request has its lease until its handler returns; core.WithMaxHold limits it"

// requestOptions are the options of all guards of requests, beside the ones of all guards.
var requestOptions = []string{
	"WithAskTimeout", "httplock.WithRefusalHandler", "httplock.WithMethods", "httplock.WithWaiters", "httplock.WithBodyLimit",
	"httplock.WithBodyMemory",
}

var exclusivePlace = guards.Place{
	Name:  "httplock.Exclusive",
	Takes: slices.Concat(guards.ExclusiveTakes, requestOptions),
	Refuses: map[string]string{
		"core.WithOwner":  "requests with one owner do not exclude each other",
		"WithZombieGrace": keptUntilReturned,
	},
	Otherwise: "it keeps no records; Once and Idempotent do",
}

var oncePlace = recordPlace("httplock.Once", "httplock.WithReplay", map[string]string{
	"core.WithQuota": "its keys have no scope; Idempotent counts those of a scope",
})

var idempotentPlace = recordPlace("httplock.Idempotent", "core.WithQuota", map[string]string{
	"httplock.WithReplay": "it always replays",
})

// recordPlace returns a place whose guards keep records. takes is the option that only this place has.
func recordPlace(name, takes string, refuses map[string]string) guards.Place {
	reasons := map[string]string{
		"core.WithFixedTTL": keptUntilReturned, "WithZombieGrace": keptUntilReturned,
		"core.WithFingerprint": "each request has its own; httplock.WithFingerprint says of what",
		"core.WithLabel":       "it labels records with the route",
	}
	maps.Copy(reasons, refuses)
	return guards.Place{
		Name: name,
		Takes: slices.Concat(guards.OnceTakes, requestOptions, []string{
			takes, "httplock.WithRetentionUntil", "httplock.WithCompletion", "httplock.WithDetachedContext", "httplock.WithCodec",
			"httplock.WithFingerprint", "httplock.WithComparedHeader", "httplock.WithKeyHeader", "httplock.WithMarkerField",
		}),
		Refuses: reasons,
	}
}
