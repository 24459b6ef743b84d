package connectlock

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/middleware/internal/rpc"
)

// KeyFunc makes the key of a call. Write your own with [NewKey]:
//
//	func(c *connectlock.Call) (connectlock.Key, error) {
//		return connectlock.NewKey("tenant", tenantOf(c.Context()))
//	}
//
// If the error is [ErrKeyRequired], [ErrKeyInvalid] or [ErrScopeRequired], the guard refuses the call with invalid_argument,
// invalid_argument or unauthenticated. It refuses any other error with internal.
type KeyFunc = rpc.KeyFunc

// Call is a call as key functions see it. Its method Context returns the context of the call. Its fields are Method, the full method;
// Message, the request as a proto.Message, which is nil for streams; Metadata, a function that returns the values of a
// header field; and TLS, a function that returns the *tls.ConnectionState, or nil.
type Call = rpc.Call

// Key identifies what must not run at the same time.
type Key = rpc.Key

// Errors, for errors.Is. The first three are of key functions; ErrNoRecord is of [Guard.Forget].
var (
	ErrKeyRequired   = rpc.ErrKeyRequired
	ErrKeyInvalid    = rpc.ErrKeyInvalid
	ErrScopeRequired = rpc.ErrScopeRequired
	ErrNoRecord      = rpc.ErrNoRecord
)

// NewKey returns a key of one named value. The error is [ErrKeyRequired] if the value is empty, and [ErrKeyInvalid] if it has more
// than 255 bytes, a control character, or is not valid UTF-8. The client gets the name in the refusal.
func NewKey(name, value string) (Key, error) { return rpc.NewKey(name, value) }

// ByMethod identifies calls by their full method: "/pay.v1.Payments/Charge".
func ByMethod() KeyFunc { return rpc.ByMethod() }

// ByMetadata identifies calls by a header field of the request that must occur exactly once. Clients choose it freely,
// so join it with the user: [ByContext]. ByMetadata panics if the name is empty or ends in "-bin".
func ByMetadata(name string) KeyFunc { return rpc.ByMetadata(name) }

// ByField identifies calls by a field of the request message, "request_id" or "order.id": a string, bytes, an integer or an enum. A
// field that is not set, or is 0 or "", makes no key. A path that the message does not have is a mistake in the program, which is
// answered internal. ByField panics if the path is empty.
func ByField(path string) KeyFunc { return rpc.ByField(path) }

// ByContext identifies calls by the value of their context at ctxKey: the user, put there by an interceptor in front of
// the guard. It may be a string, an integer, a [16]byte or an encoding.TextMarshaler. If it is absent or its type's
// zero value, no user is logged in, and the error is [ErrScopeRequired]. Only its text makes the key. ByContext panics
// if ctxKey is nil.
func ByContext(ctxKey any) KeyFunc { return rpc.ByContext(ctxKey) }

// ByPeer identifies calls by the client's certificate, which the server must verify (mTLS): by its URI if it has
// exactly one, as the certificate of SPIFFE, and otherwise by its subject. The server's handler must be wrapped by
// [WithTLS]. The error is [ErrScopeRequired] if there is no certificate.
func ByPeer() KeyFunc { return rpc.ByPeer() }

// Keys joins keys: all of them together identify a call. It fails with the first error of fns. Keys panics if there are no functions
// or one is nil.
func Keys(fns ...KeyFunc) KeyFunc { return rpc.Keys(fns...) }

// FirstOf returns the key of the first of fns that finds one. It tries the next one only after [ErrKeyRequired] and
// [ErrScopeRequired]. FirstOf panics if there are no functions or one is nil.
func FirstOf(fns ...KeyFunc) KeyFunc { return rpc.FirstOf(fns...) }

// Constant returns the same key for all calls: only one of them runs at a time. Joined with other keys, it distinguishes guards whose
// keys would be equal. Constant panics if the value is no key of [NewKey].
func Constant(value string) KeyFunc { return rpc.Constant(value) }

// Unscoped returns the same key for all calls, as a scope that all clients share. A client that sends the key of another client gets
// that client's response, so use it only if all clients are one, or if the responses are public.
func Unscoped() KeyFunc { return rpc.Constant("unscoped") }

// Option configures a guard: the options of this package, and core's that fit. An invalid value makes the constructor panic, or
// return an error with New in its name, and so does an option that makes no sense there.
//
//   - [core.WithWait] sets how long a call waits for the one before it: at most until one second before its deadline. Defaults to
//     250 ms for Exclusive, 0 for others.
//   - [core.WithRetention] is for records. Defaults to 24 h.
//   - [core.WithFailurePolicy] is about a run that may have taken effect although it failed. With [core.RetryFailures] the next call
//     runs. With [core.HoldFailures] all calls get OUTCOME_UNKNOWN until an operator calls Resolve or Forget of the [Guard]. Defaults
//     to core.RetryFailures.
//   - [core.WithProof]: the transaction returns the bytes of an anypb.Any with the response, so that a retry that finds
//     its effect gets the response. For other bytes it gets ALREADY_COMPLETED.
//   - [core.WithMaxValue] bounds the response with its metadata that is recorded. A call with the key of a larger one gets
//     ALREADY_COMPLETED; of a larger error, only code and message are recorded, cut to fit. Defaults to 256 KiB.
//   - [core.WithQuota] bounds how many records the keys of one scope of [Idempotent] may have at a time. One more is refused with
//     TOO_MANY_KEYS. Defaults to 0: none.
type Option = guard.Option

// FailOpen lets calls run unguarded while Redis is unreachable. By default they are refused with unavailable. Defaults to
// off.
func FailOpen() Option { return guard.FailOpen() }

// OptionalKey lets calls without a key run unguarded. A malformed key is refused all the same. Defaults to off: they are refused.
func OptionalKey() Option { return guard.OptionalKey() }

// WithKey sets where [Idempotent] finds the key of the client, behind its scope: ByField("request_id") for instance. Defaults to
// ByMetadata("idempotency-key").
func WithKey(key KeyFunc) Option { return rpc.WithKey(key) }

// WithReplay makes [Once] answer a second call with the recorded response of the first. Any client that can send the key gets that
// response, so join the key with the user. By default it is refused with already_exists. Defaults to off.
func WithReplay() Option { return rpc.WithReplay() }

// WithIgnoredFields sets fields of the request that Idempotent does not compare, such as a time of sending: "sent_at", "order.trace".
// The path of a field in a list or a map does not have an index or a key. The log warns of a path that no request has. Defaults to
// none.
func WithIgnoredFields(paths ...string) Option { return rpc.WithIgnoredFields(paths...) }

// WithDetachedContext keeps the end of the call's context from the handler: work that should not be interrupted continues when the
// client cancels, and after its deadline. A lost lease still ends it. Defaults to off, or on with [core.HoldFailures].
func WithDetachedContext() Option { return rpc.WithDetachedContext() }

// Codec encrypts and authenticates recorded responses. Make one with [NewAESGCM], or see httplock.Codec for what one has to do.
type Codec = rpc.Codec

// NewAESGCM returns a Codec of AES-GCM. Keys have 16, 24 or 32 bytes. To change the key, pass the new one first and the older ones
// behind it, on all instances, for as long as records are kept.
func NewAESGCM(key []byte, older ...[]byte) (Codec, error) { return rpc.NewAESGCM(key, older...) }

// WithCodec sets what encrypts recorded responses, for instance [NewAESGCM]. A response that the codec can no longer
// decrypt is refused with ALREADY_COMPLETED. Defaults to none.
func WithCodec(codec Codec) Option { return rpc.WithCodec(codec) }

// WithKeySecret makes the hashes of keys with a secret of 16 bytes at least (HMAC), so that a reader of Redis cannot guess whose they
// are. All instances need the same one. Defaults to none.
func WithKeySecret(secret []byte) Option { return guard.WithKeySecret(secret) }

// WithAskTimeout sets how long Redis may take to answer about a call. Defaults to 1 s.
func WithAskTimeout(limit time.Duration) Option { return guard.WithAskTimeout(limit) }

// WithFinishTimeout sets how long the end of a call waits for Redis to confirm the record. After that the record is retried in the
// background. Defaults to 5 s.
func WithFinishTimeout(limit time.Duration) Option { return guard.WithFinishTimeout(limit) }

// WithZombieGrace sets how long a lease is renewed after the call's context has ended while the handler continues. After that the
// lease expires. Defaults to 2 min.
func WithZombieGrace(grace time.Duration) Option { return guard.WithZombieGrace(grace) }
