package httplock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	guards "github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/httprecord"
)

// Errors of the key of a request. Check them with errors.Is. Functions that make keys wrap one of them; any other
// error of theirs counts as the server's own failure.
var (
	// ErrKeyRequired says that the request lacks a part of its key: 400.
	ErrKeyRequired = errors.New("holdfast: no key in the request")

	// ErrKeyInvalid says that a part of the key is in a form or place that is refused, too long, or occurs twice: 400.
	ErrKeyInvalid = errors.New("holdfast: invalid key in the request")

	// ErrScopeRequired says that no user is known for the request: 401. Authentication, which belongs around the
	// guard, should have refused it.
	ErrScopeRequired = errors.New("holdfast: no principal for the key of the request")

	// ErrNoRoute says that the key needs a part of the route that is not known at the place of the guard: 500, since
	// every other request would fail too. Wrap the handlers in the router, not the router. A router that sets neither
	// Pattern nor path values of a request has to be helped: the middleware for gorilla/mux is in docs/http.md.
	ErrNoRoute error = &routeError{"holdfast: route not known here: wrap the handler, not the mux"}
)

// idempotencyKey is the name of the part that a client has chosen. It comes last, behind its scope.
const idempotencyKey = "idempotency-key"

// Key identifies what must not run at the same time. It is a list of named values and made by [NewKey] and [Join]. The
// zero Key is none: it never locks anything.
type Key struct {
	parts []part
}

type part struct{ name, value string }

// NewKey returns a key of one named value. A client whose request lacks the value gets the name in the answer. The
// error is [ErrKeyRequired] if the value is empty, and [ErrKeyInvalid] if it has more than 255 bytes.
func NewKey(name, value string) (Key, error) {
	switch {
	case value == "":
		return Key{}, KeyError(ErrKeyRequired, "%s is empty", partWords(name))
	case len(value) > httprecord.MaxKey:
		return Key{}, KeyError(ErrKeyInvalid, "%s has %d bytes, at most %d are allowed",
			partWords(name), len(value), httprecord.MaxKey)
	}
	return Key{parts: []part{{name, value}}}, nil
}

var errPartMissing = fmt.Errorf("%w: a part is missing", ErrKeyRequired)

// Join returns the key of all keys together, as [Keys] makes it. It is for business code without a request, to
// identify what a request has left. Join [RouteKey], [PrincipalKey], [PathKey] and [NewKey] in the order in which the
// guard has them. The error is [ErrKeyRequired] if there are none, or one is the zero Key.
func Join(keys ...Key) (Key, error) {
	size := 0
	for _, k := range keys {
		size += len(k.parts)
	}
	joined := Key{parts: make([]part, 0, size)}
	for _, k := range keys {
		if k.IsZero() {
			return Key{}, errPartMissing
		}
		joined.parts = append(joined.parts, k.parts...)
	}
	if joined.IsZero() {
		return Key{}, fmt.Errorf("%w: it has no parts", ErrKeyRequired)
	}
	return joined, nil
}

// IsZero returns true if k is no key.
func (k Key) IsZero() bool { return len(k.parts) == 0 }

// Equal returns true if both have the same parts in the same order.
func (k Key) Equal(other Key) bool { return slices.Equal(k.parts, other.parts) }

// Hash returns 43 characters of base64url which are the same for equal keys only. The key cannot be read from the
// hash, but a reader who guesses all parts can recognise it: see [Key.HashWith].
func (k Key) Hash() string { return k.HashWith(nil) }

// HashWith is [Key.Hash] with a secret. Without the secret, a reader of Redis cannot recognise a user's number or mail
// address by hashing all possible ones. All instances must have the same secret. Another secret makes other names of
// locks and records. HashWith returns Hash if secret is empty.
func (k Key) HashWith(secret []byte) string {
	texts := make([]string, 0, 16) // of most keys, on the stack
	for _, p := range k.parts {
		texts = append(texts, p.name, p.value)
	}
	return guards.Hash(secret, texts...)
}

// Name returns the name of the lock and of the record that the guards make of the key with a secret, see [WithKeySecret]: for
// operators. An empty secret is none.
func (k Key) Name(secret []byte) string {
	name, _ := k.record(secret)
	return name
}

// record returns the name of the key's record, and the key's hash. The records of one scope share a pair of braces, so that they can
// be counted.
func (k Key) record(secret []byte) (name, hash string) {
	hash = k.HashWith(secret)
	last := len(k.parts) - 1
	if last < 1 || k.parts[last].name != idempotencyKey {
		return httprecord.Prefix + hash, hash
	}
	return httprecord.Prefix + "{" + Key{parts: k.parts[:last]}.HashWith(secret) + "}:" + hash, hash
}

// String returns the hash, so that no value gets into a log by accident.
func (k Key) String() string { return k.Hash() }

// GoString returns the hash, as [Key.String] does.
func (k Key) GoString() string { return "httplock.Key(" + k.Hash() + ")" }

// KeyError returns an error of a key function that is kind, [ErrKeyRequired] or [ErrKeyInvalid]. Its text goes to the
// client in the detail of the problem: what the request lacks, or what is wrong with it. Write a constant text, like
// "the header field X-Cart is missing". It must not repeat what a client has sent.
func KeyError(kind error, format string, args ...any) error {
	return &keyError{kind, fmt.Sprintf(format, args...)}
}

// missing is the [KeyError] of a request that lacks the value of the part of that name: "header:X-Cart".
func missing(part string) error { return KeyError(ErrKeyRequired, "%s is missing", partWords(part)) }

// repeated is the [KeyError] of a request that has several values for the part of that name: the guard and the handler
// might use different values.
func repeated(part string, times int) error {
	return KeyError(ErrKeyInvalid, "%s is there %d times", partWords(part), times)
}

type keyError struct {
	kind error
	text string
}

func (e *keyError) Error() string { return e.kind.Error() + ": " + e.text }

func (e *keyError) Unwrap() error { return e.kind }

// toldOf returns the sentence of err that is for the client, "" if there is none.
func toldOf(err error) string {
	var told *keyError
	if !errors.As(err, &told) {
		return ""
	}
	first, size := utf8.DecodeRuneInString(told.text)
	return string(unicode.ToUpper(first)) + told.text[size:] + "."
}

// partWords says what the name of a part of a key means to a client.
func partWords(name string) string {
	if name == idempotencyKey {
		return headerWords(HeaderIdempotencyKey)
	}
	kind, rest, found := strings.Cut(name, ":")
	if !found {
		return name
	}
	switch kind {
	case "header":
		return headerWords(rest)
	case "cookie":
		return "the cookie " + rest
	case "query":
		return "the query parameter " + rest
	case "form":
		return "the form field " + rest
	case "json":
		return fmt.Sprintf("the JSON value at %q", rest)
	case "path":
		return "the path value " + rest
	}
	return name
}

func headerWords(field string) string { return "the header field " + field }

// KeyFunc makes the key of a request. Write your own with [NewKey]:
//
//	import httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
//
//	func(r *http.Request) (httplock.Key, error) {
//		return httplock.NewKey("tenant", tenantOf(r))
//	}
//
// If the error is [ErrKeyRequired], [ErrKeyInvalid] or [ErrScopeRequired], the guard refuses the request with 400, 400
// or 401. It refuses any other error, and [ErrNoRoute], with 500. The log has only the type of such an error, unless it is a
// [log/slog.LogValuer], because its text may repeat what a client has sent.
//
// The request is a shallow copy of the one that came in, which the handler gets too. Its body is not read yet. A
// KeyFunc that reads it takes it from the handler: see [ByForm] and [ByJSON]. A guard of another framework hands on a copy in
// which Pattern, path values and context values are the framework's, so one KeyFunc serves all of them.
type KeyFunc func(r *http.Request) (Key, error)

// Keys joins keys: all of them together identify a request. It fails with the first error of fns. Keys panics if there
// are no functions or one is nil.
func Keys(fns ...KeyFunc) KeyFunc {
	fns = guards.KeyFuncs("Keys", fns)
	return func(r *http.Request) (Key, error) {
		keys, err := guards.AllKeys[*http.Request, Key](r, fns)
		if err != nil {
			return Key{}, err
		}
		return Join(keys...)
	}
}

// FirstOf returns the key of the first of fns that finds one: the user's if a user is logged in, else the key of a
// cookie. It tries the next one only after [ErrKeyRequired], [ErrScopeRequired], and the [ErrKeyInvalid] of a value that stands in
// another place, such as the query for [ByForm]. If all fail so, it returns the error of the first, or that ErrKeyInvalid instead of
// ErrKeyRequired. FirstOf panics if there are no functions or one is nil.
//
// Parts of keys are named, so a value from one source never equals the same value from another. So a client that may
// leave out a source chooses its key: its two requests run at the same time if one has the source and the other has
// not.
func FirstOf(fns ...KeyFunc) KeyFunc {
	fns = guards.KeyFuncs("FirstOf", fns)
	return func(r *http.Request) (Key, error) {
		var elsewhere error
		key, err := guards.FirstKey(r, fns, func(err error) bool {
			if errors.Is(err, errElsewhere) {
				elsewhere = cmp.Or(elsewhere, err)
				return true
			}
			return errors.Is(err, ErrKeyRequired) || errors.Is(err, ErrScopeRequired)
		}, errPartMissing)
		if errors.Is(err, ErrKeyRequired) {
			err = cmp.Or(elsewhere, err)
		}
		return key, err
	}
}

// Constant returns the same key for all requests: only one of them runs at a time. Joined with other keys, it
// distinguishes guards whose keys would be equal. Constant panics if value is empty or has more than 255 bytes.
func Constant(value string) KeyFunc {
	key, err := NewKey("constant", value)
	if err != nil {
		panic(err)
	}
	return func(*http.Request) (Key, error) { return key, nil }
}

// Unscoped returns the same key for all requests. Use it as a scope that all clients share. A client that sends the
// key of another client gets that client's answer. So use it only if all clients are one, or if the answers are
// public.
func Unscoped() KeyFunc {
	return func(*http.Request) (Key, error) { return NewKey("unscoped", "all") }
}

// keyParts are the texts of a key, in the order of the guard's key function, in place of a request: what an operator knows of it.
// Each key function takes its own, see [orOfText].
type keyParts struct {
	left    []string
	pattern string // of the route, once its part was taken
}

type partsKey struct{}

// orOfText returns a key function that makes the key of a request, or in its place of the next text of an operator.
func orOfText(ofText func(p *keyParts, text string) (Key, error), of KeyFunc) KeyFunc {
	return func(r *http.Request) (Key, error) {
		parts, _ := r.Context().Value(partsKey{}).(*keyParts)
		switch {
		case parts == nil:
			return of(r)
		case len(parts.left) == 0:
			return Key{}, fmt.Errorf("%w: too few parts", ErrKeyShape)
		}
		text := parts.left[0]
		parts.left = parts.left[1:]
		return ofText(parts, text)
	}
}

func plainly(of func(text string) (Key, error)) func(*keyParts, string) (Key, error) {
	return func(_ *keyParts, text string) (Key, error) { return of(text) }
}

func named(name string) func(*keyParts, string) (Key, error) {
	return func(_ *keyParts, text string) (Key, error) { return NewKey(name, text) }
}

func principalOfText(_ *keyParts, user string) (Key, error) { return PrincipalKey(user) }

func clientOfText(_ *keyParts, text string) (Key, error) {
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return Key{}, fmt.Errorf("%w: no address: %w", ErrKeyInvalid, err)
	}
	return clientKey(addr)
}

// route makes the key of a method, a space and the pattern of a route.
func (p *keyParts) route(text string) (Key, error) {
	method, pattern, found := strings.Cut(text, " ")
	if !found {
		return Key{}, fmt.Errorf(`%w: %q is no route, such as "POST /orders"`, ErrKeyInvalid, text)
	}
	p.pattern = pattern
	return RouteKey(method, pattern)
}

// pathOfText makes the key of the value of a wildcard of the route that was taken before.
func pathOfText(name string) func(*keyParts, string) (Key, error) {
	return func(p *keyParts, value string) (Key, error) {
		if p.pattern == "" {
			return Key{}, fmt.Errorf("%w: the wildcard %q is that of a route, but no route comes before it: use PeekKey with PathKey",
				ErrKeyShape, name)
		}
		return PathKey(p.pattern, name, value)
	}
}

// errOwnFunction says that a key function could do nothing with texts.
var errOwnFunction = errors.New("holdfast: the key function makes no key of texts: use PeekKey")

// keyOfParts has a key function make the key of texts. One of the user's may panic, because there is less than in a request.
func keyOfParts(ctx context.Context, of func(*http.Request) (Key, error), texts []string) (key Key, err error) {
	parts := &keyParts{left: texts}
	defer func() {
		if r := recover(); r != nil {
			key, err = Key{}, fmt.Errorf("%w: it panicked: %v", errOwnFunction, r)
		}
	}()
	r := (&http.Request{Header: make(http.Header), URL: new(url.URL), Body: http.NoBody}).WithContext(context.WithValue(ctx, partsKey{}, parts))
	key, err = of(r)
	switch {
	case err != nil && len(parts.left) > 0 && !errors.Is(err, ErrKeyShape):
		return Key{}, fmt.Errorf("%w: %w", errOwnFunction, err)
	case err != nil:
		return Key{}, err
	case len(parts.left) > 0:
		return Key{}, fmt.Errorf("%w: %d parts more than it has", ErrKeyShape, len(parts.left))
	}
	return key, nil
}
