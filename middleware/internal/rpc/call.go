package rpc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/holdfast-go/holdfast/internal/guard"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// Key identifies what must not run at the same time.
type Key = httplock.Key

// Errors of key functions, for errors.Is.
var (
	ErrKeyRequired   = httplock.ErrKeyRequired
	ErrKeyInvalid    = httplock.ErrKeyInvalid
	ErrScopeRequired = httplock.ErrScopeRequired
)

// Call is a call as key functions see it.
type Call struct {
	// Method is the full method: "/pay.v1.Payments/Charge".
	Method string
	// Message is the request. It is nil for a stream, and for a request that is no protobuf message.
	Message proto.Message
	// Metadata returns the values of a key of the request metadata, or of a header field.
	Metadata func(name string) []string
	// TLS returns the connection's state, nil if the connection has none or it is unknown.
	TLS func() *tls.ConnectionState

	ctx    context.Context
	stream bool
	parts  *[]string // of an operator, in place of a request
}

// NewCall returns a call. The other fields are set by the caller.
func NewCall(ctx context.Context, method string, stream bool) *Call {
	return &Call{Method: method, ctx: ctx, stream: stream}
}

// Context returns the context of the call.
func (c *Call) Context() context.Context { return c.ctx }

// part returns the next part of the key that an operator has named, and true if the call is an operator's.
func (c *Call) part() (value string, operator bool) {
	if c.parts == nil {
		return "", false
	}
	if parts := *c.parts; len(parts) > 0 {
		value, *c.parts = parts[0], parts[1:]
	}
	return value, true
}

// KeyFunc makes the key of a call.
type KeyFunc func(*Call) (Key, error)

// keyError is an error of a key whose text the client gets.
type keyError struct {
	kind        error
	field, text string
}

func (e *keyError) Error() string { return e.kind.Error() + ": " + e.field + " " + e.text }
func (e *keyError) Unwrap() error { return e.kind }

// mistake is an error of a key function that is the program's. Its text has nothing of a call, so it may be logged.
type mistake string

func (e mistake) Error() string { return string(e) }

// LogValue implements [slog.LogValuer].
func (e mistake) LogValue() slog.Value { return slog.StringValue(string(e)) }

// NewKey returns a key of one named value.
func NewKey(name, value string) (Key, error) { return newKey(name, name, value) }

// newKey returns a key of one part. The client knows its value as the field's.
func newKey(name, field, value string) (Key, error) {
	fail := func(kind error, text string) (Key, error) { return Key{}, &keyError{kind, field, text} }
	const most = 255
	switch {
	case value == "":
		return fail(ErrKeyRequired, "is missing")
	case len(value) > most:
		return fail(ErrKeyInvalid, fmt.Sprintf("has %d bytes, at most %d are allowed", len(value), most))
	case !utf8.ValidString(value):
		return fail(ErrKeyInvalid, "is not valid UTF-8")
	case strings.ContainsFunc(value, unicode.IsControl):
		return fail(ErrKeyInvalid, "has a control character")
	}
	return httplock.NewKey(name, value)
}

// ByMethod identifies calls by their full method.
func ByMethod() KeyFunc {
	return func(c *Call) (Key, error) {
		method := c.Method
		if value, operator := c.part(); operator {
			method = value
		}
		return NewKey("method", method)
	}
}

// ByMetadata identifies calls by a value of the request metadata that must occur exactly once.
func ByMetadata(name string) KeyFunc {
	name = strings.ToLower(name)
	if name == "" || strings.HasSuffix(name, "-bin") {
		panic(fmt.Sprintf("holdfast: ByMetadata(%q): the key must be one of text", name))
	}
	return func(c *Call) (Key, error) {
		if value, operator := c.part(); operator {
			return newKey("metadata:"+name, name, value)
		}
		value, fault := guard.OnlyValue(c.Metadata(name))
		if fault != "" {
			return Key{}, &keyError{ErrKeyInvalid, name, fault}
		}
		return newKey("metadata:"+name, name, value)
	}
}

// ByField identifies calls by a field of the request message.
func ByField(path string) KeyFunc {
	names := strings.Split(path, ".")
	if slices.Contains(names, "") {
		panic(fmt.Sprintf("holdfast: ByField(%q): a path is like order.id", path))
	}
	return ofMessage(func(c *Call) (Key, error) {
		if value, operator := c.part(); operator {
			return newKey("field:"+path, path, value)
		}
		if c.Message == nil {
			return Key{}, mistake("holdfast: ByField: the call has no protobuf message that a guard sees, as streams have not")
		}
		text, err := field(c.Message.ProtoReflect(), names)
		if err != nil {
			return Key{}, mistake(fmt.Sprintf("holdfast: ByField(%q): %v", path, err))
		}
		return newKey("field:"+path, path, text)
	})
}

// field returns the text of the field at a path, "" if it is not set. The error is a mistake in the program.
func field(m protoreflect.Message, path []string) (string, error) {
	fd := m.Descriptor().Fields().ByName(protoreflect.Name(path[0]))
	switch {
	case fd == nil:
		return "", fmt.Errorf("%s has no field %s", m.Descriptor().FullName(), path[0])
	case fd.IsList() || fd.IsMap():
		return "", fmt.Errorf("%s is repeated", fd.FullName())
	case len(path) > 1 && fd.Message() == nil:
		return "", fmt.Errorf("%s is no message", fd.FullName())
	case len(path) > 1: // also if it is not set, to find a mistake in the rest of the path
		return field(m.Get(fd).Message(), path[1:])
	}
	v, kind := m.Get(fd), fd.Kind()
	switch kind {
	case protoreflect.BoolKind, protoreflect.FloatKind, protoreflect.DoubleKind, protoreflect.MessageKind, protoreflect.GroupKind:
		return "", fmt.Errorf("%s is a %s, which identifies nothing", fd.FullName(), kind)
	}
	if !m.Has(fd) {
		return "", nil
	}
	switch kind {
	case protoreflect.StringKind:
		return v.String(), nil
	case protoreflect.BytesKind:
		return fmt.Sprintf("%x", v.Bytes()), nil
	case protoreflect.EnumKind:
		return strconv.Itoa(int(v.Enum())), nil
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind,
		protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return strconv.FormatInt(v.Int(), 10), nil
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind, protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return strconv.FormatUint(v.Uint(), 10), nil
	}
	return "", fmt.Errorf("%s is a %s, which is not supported", fd.FullName(), kind)
}

// ByContext identifies calls by the value of their context at ctxKey.
func ByContext(ctxKey any) KeyFunc {
	if ctxKey == nil {
		panic("holdfast: ByContext: the context key is nil")
	}
	return func(c *Call) (Key, error) {
		if value, operator := c.part(); operator {
			return httplock.PrincipalKey(value)
		}
		key, err := httplock.PrincipalKey(c.ctx.Value(ctxKey))
		if err != nil {
			return Key{}, fmt.Errorf("%w (the value at %T in the context)", err, ctxKey)
		}
		return key, nil
	}
}

// ByPeer identifies calls by the identity in the verified certificate of the client.
func ByPeer() KeyFunc {
	return func(c *Call) (Key, error) {
		if value, operator := c.part(); operator {
			return newKey("peer", "peer", value)
		}
		state := c.TLS()
		if state == nil || len(state.VerifiedChains) == 0 || len(state.PeerCertificates) == 0 {
			return Key{}, fmt.Errorf("%w: no verified certificate of the client", ErrScopeRequired)
		}
		leaf := state.PeerCertificates[0]
		name := leaf.Subject.String()
		if len(leaf.URIs) == 1 {
			name = leaf.URIs[0].String()
		}
		if name == "" {
			return Key{}, fmt.Errorf("%w: the client's certificate has neither one URI nor a subject", ErrScopeRequired)
		}
		return newKey("peer", "peer", name)
	}
}

// Constant returns the same key for all calls.
func Constant(value string) KeyFunc {
	key, err := NewKey("constant", value)
	if err != nil {
		panic(err)
	}
	return func(*Call) (Key, error) { return key, nil }
}

// Keys joins keys.
func Keys(fns ...KeyFunc) KeyFunc {
	fns = guard.KeyFuncs("Keys", fns)
	return joined(fns, func(c *Call) (Key, error) {
		keys, err := guard.AllKeys[*Call, Key](c, fns)
		if err != nil {
			return Key{}, err
		}
		return httplock.Join(keys...)
	})
}

// FirstOf returns the key of the first function that finds one.
func FirstOf(fns ...KeyFunc) KeyFunc {
	fns = guard.KeyFuncs("FirstOf", fns)
	return joined(fns, func(c *Call) (Key, error) {
		return guard.FirstKey(c, fns, func(err error) bool {
			return errors.Is(err, ErrKeyRequired) || errors.Is(err, ErrScopeRequired)
		}, errPartMissing)
	})
}

var errPartMissing = fmt.Errorf("%w: a part is missing", ErrKeyRequired)

// ofMessage marks a key function that needs the message of a call. It is not inlined, so all that it returns have the same code, by
// which [needsMessage] knows them: to call a key function of the user would need a real call.
//
//go:noinline
func ofMessage(of KeyFunc) KeyFunc {
	return func(c *Call) (Key, error) { return of(c) }
}

// needsMessage reports whether a key function is [ByField], or has one within [Keys] or [FirstOf].
func needsMessage(fn KeyFunc) bool {
	return reflect.ValueOf(fn).Pointer() == reflect.ValueOf(ofMessage(nil)).Pointer()
}

// joined returns a key function that calls others, marked if one of them is.
func joined(fns []KeyFunc, of KeyFunc) KeyFunc {
	if slices.ContainsFunc(fns, needsMessage) {
		return ofMessage(of)
	}
	return of
}
