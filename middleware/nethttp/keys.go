package httplock

import (
	"encoding"
	"errors"
	"fmt"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"reflect"
	"strconv"
	"strings"

	"github.com/google/uuid"

	guards "github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/httprecord"
	"github.com/holdfast-go/holdfast/internal/jsonfield"
)

// ByHeader identifies requests by a header field, which must occur exactly once. Clients choose it freely, so join it
// with the user: [ByContext]. A field that is there and empty is [ErrKeyInvalid].
func ByHeader(name string) KeyFunc {
	name = http.CanonicalHeaderKey(name)
	return orOfText(named("header:"+name), func(r *http.Request) (Key, error) {
		value, err := headerValue(name, r.Header[name])
		if err != nil {
			return Key{}, err
		}
		return NewKey("header:"+name, value)
	})
}

// headerValue returns the value in the lines of a header field. The error is [ErrKeyRequired] if there are no lines, and
// [ErrKeyInvalid] if there are several or the line is empty.
func headerValue(field string, lines []string) (string, error) {
	value, fault := guards.OnlyValue(lines)
	switch {
	case fault != "":
		return "", KeyError(ErrKeyInvalid, "%s %s", headerWords(field), fault)
	case value == "":
		return "", missing("header:" + field)
	}
	return value, nil
}

// ByCookie identifies requests by the value of a cookie, which must occur exactly once. Escapes in the value do not count: a%20b, a+b
// and "a b" are one key, as they are one value for gin.
//
// The error is [ErrKeyInvalid] for a cookie whose name differs by case or brackets only: Voucher, voucher[].
func ByCookie(name string) KeyFunc {
	part := "cookie:" + name
	return orOfText(plainly(func(text string) (Key, error) { return NewKey(part, cookieText(text)) }), func(r *http.Request) (Key, error) {
		return cookiesOf(r).only(part, name)
	})
}

// ByQuery identifies requests by a parameter of the query in the URL, which must occur exactly once.
//
// The error is [ErrKeyInvalid] for a parameter whose name differs by case or brackets only, and if the body is a form that has
// the name, because a handler could read that one. So a form, even multipart/form-data, is read up to 64 KiB, as for [ByForm];
// a larger one is refused. Make the key of uploads with a function of your own.
func ByQuery(name string) KeyFunc {
	part := "query:" + name
	return orOfText(named(part), func(r *http.Request) (Key, error) {
		query, err := queryOf(r)
		if err != nil {
			return Key{}, err
		}
		key, err := query.only(part, name)
		if err != nil {
			return Key{}, orElsewhere(r, part, err, name)
		}
		return theForm.lacks(r, key, name)
	})
}

// ByHost identifies requests by their host, without case, default port and the dot at the end. It distinguishes the
// sites and tenants of one service on one Redis: join it with the user. Clients choose the host, even in HTTP/2 and by
// an absolute target. So it is no principal, and a client that may send any host may choose among keys. Let the proxy
// in front, or a pattern with a host, pass only hosts that exist.
//
// The error is [ErrKeyRequired] if a request has no host.
func ByHost() KeyFunc {
	return orOfText(plainly(HostKey), func(r *http.Request) (Key, error) {
		return HostKey(r.Host)
	})
}

// HeaderIdempotencyKey is the header field in which a client sends the key that it chose for a request.
const HeaderIdempotencyKey = "Idempotency-Key"

// parseKeyField returns the key in the lines of a header field: see [httprecord.ParseKey]. The error is [ErrKeyRequired] if there
// are no lines, and [ErrKeyInvalid] for anything else. It does not repeat what the client sent.
func parseKeyField(field string, lines []string) (string, error) {
	line, err := headerValue(field, lines)
	if err != nil {
		return "", err
	}
	key, fault := httprecord.ParseKey(line)
	if fault != "" {
		return "", KeyError(ErrKeyInvalid, "%s %s", headerWords(field), fault)
	}
	return key, nil
}

// IdempotencyKey returns the key that [Idempotent] joins to its scope for a client's Idempotency-Key, for [Join]: after the keys of
// the scope. The value is the header field's, with or without its quotes.
func IdempotencyKey(value string) (Key, error) {
	chosen, err := parseKeyField(HeaderIdempotencyKey, []string{value})
	if err != nil {
		return Key{}, err
	}
	return NewKey(idempotencyKey, chosen)
}

// HostKey returns the key that [ByHost] makes of that host, for [Join].
func HostKey(host string) (Key, error) { return NewKey("host", normalHost(host)) }

func normalHost(host string) string {
	name, port, err := net.SplitHostPort(host)
	if err != nil { // without port
		name, port = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), ""
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if addr, err := netip.ParseAddr(name); err == nil {
		name = addr.String()
	}
	if port == "" || port == "80" || port == "443" {
		return name
	}
	return net.JoinHostPort(name, port)
}

// ByContext identifies requests by the value of the request's context at ctxKey: the user, put there by
// authentication. In a guard of gin, Echo or fiber, it finds the values of the framework's context too: c.Set("user", user), or
// c.Locals in fiber. It may be a string, an integer, a UUID or an [encoding.TextMarshaler], see
// [PrincipalKey]. If it is absent or its type's zero value, no user is logged in, and the error is
// [ErrScopeRequired]. A value of any other type is refused with 500, even one that has a method String. Use
// [ByPrincipal] for it, whose types the compiler checks. ByContext panics if ctxKey is nil.
//
// Only the text of the value makes the name of the lock. Its type does not, nor does ctxKey, whose identity may change
// from build to build. Join a [Constant] where two kinds of principal could meet in one lock.
func ByContext(ctxKey any) KeyFunc {
	if ctxKey == nil {
		panic("holdfast: ByContext: the context key is nil")
	}
	return orOfText(principalOfText, func(r *http.Request) (Key, error) {
		key, err := PrincipalKey(r.Context().Value(ctxKey))
		if err != nil {
			return Key{}, fmt.Errorf("%w (the value at %s in the context)", err, nameOf(ctxKey))
		}
		return key, nil
	})
}

// nameOf returns what a program calls a key of a context: the name of a value of a framework's context, or the type.
func nameOf(ctxKey any) string {
	if name, ok := ctxKey.(string); ok {
		return strconv.Quote(name)
	}
	return fmt.Sprintf("%T", ctxKey)
}

// ByPrincipal identifies requests by the user that the function of finds in the request, by an identity that no other
// user has:
//
//	import httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
//
//	user := httplock.ByPrincipal(func(r *http.Request) (string, error) {
//		return sessionOf(r.Context()).Account.Number, nil
//	})
//
// The key is the same as the key of [ByContext] for the same text. If it is empty, no user is logged in, and the error is
// [ErrScopeRequired]. An error of the function means the same as one of a [KeyFunc]. ByPrincipal panics if the
// function is nil.
func ByPrincipal(of func(r *http.Request) (string, error)) KeyFunc {
	if of == nil {
		panic("holdfast: ByPrincipal: the function is nil")
	}
	return orOfText(principalOfText, func(r *http.Request) (Key, error) {
		user, err := of(r)
		if err != nil {
			return Key{}, err
		}
		return PrincipalKey(user)
	})
}

// PrincipalKey returns the key of a user, as authentication has left it with the request. The key is the same for all
// adapters, so services of all frameworks exclude each other for one user. The value is of a type whose text
// identifies each value:
//
//   - a string or an integer, or a type made of one, whatever methods it has
//   - a [16]byte, as a UUID
//   - an [encoding.TextMarshaler], as the UUIDs of most packages are
//
// The text counts and not the type: the string "1" and the integer 1 are one user, so a service with numbers and one
// with their text agree. If the value is nil, the zero value of its type or without text, no user is logged in, and
// the error is [ErrScopeRequired].
//
// A value of any other type, or with a text of more than 255 bytes, is a mistake in the program, whose error is none of this package.
// A [fmt.Stringer] is not enough: String is for people to read and may be masked or shortened, which would make one user of two.
func PrincipalKey(value any) (Key, error) {
	if absent(value) {
		return Key{}, ErrScopeRequired
	}
	text, err := principal(value)
	if err != nil {
		return Key{}, err
	}
	if text == "" {
		return Key{}, fmt.Errorf("%w: a %T without text", ErrScopeRequired, value)
	}
	if len(text) > httprecord.MaxKey { // authentication has chosen it, and not the client
		return Key{}, principalError(fmt.Sprintf("holdfast: the text of a %T has %d bytes, at most %d make a principal",
			value, len(text), httprecord.MaxKey))
	}
	return NewKey(principalPart, text)
}

// absent reports whether a value is nil, zero, or a pointer to such a value.
func absent(value any) bool {
	v := reflect.ValueOf(value)
	for v.IsValid() && v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	return !v.IsValid() || v.IsZero()
}

func principal(value any) (string, error) {
	v := reflect.ValueOf(value)
	switch {
	case v.Kind() == reflect.String:
		return v.String(), nil
	case v.CanInt(): // not by fmt, which would ask a method String
		return strconv.FormatInt(v.Int(), 10), nil
	case v.CanUint():
		return strconv.FormatUint(v.Uint(), 10), nil
	}
	if m, ok := value.(encoding.TextMarshaler); ok {
		text, err := m.MarshalText()
		if err != nil {
			// Without its own text, which may be about the user.
			return "", principalError(fmt.Sprintf("holdfast: no text of the principal: MarshalText of a %T fails", value))
		}
		return string(text), nil
	}
	if id := reflect.TypeFor[uuid.UUID](); v.Kind() == reflect.Array && v.CanConvert(id) {
		return v.Convert(id).Interface().(uuid.UUID).String(), nil
	}
	return "", principalError(fmt.Sprintf("holdfast: a %T is no principal: it is no string, integer, [16]byte or "+
		"encoding.TextMarshaler; let ByPrincipal return a text that identifies the user", value))
}

// principalError says what is wrong with a principal by its type. The text has nothing of the user, so it may be logged.
type principalError string

func (e principalError) Error() string { return string(e) }

// LogValue returns the whole text.
func (e principalError) LogValue() slog.Value { return slog.StringValue(string(e)) }

// ByClientIP identifies requests by the address of the client, as resolve finds it: [RemoteAddr] if clients connect to
// this server themselves. Behind a proxy, resolve has to take the address from where that proxy writes it and from
// nowhere else, because any client can send an X-Forwarded-For. An IPv6 address counts by its /64 network, from which
// a client may take any number of addresses. An IPv4 address in IPv6 form counts as IPv4, and the zone is dropped.
// ByClientIP panics if resolve is nil.
//
// An address is not a principal. Many people share one behind NAT. So never use it as the scope of recorded answers: a
// user could get the answer of another.
//
// An error of resolve means the same as one of a [KeyFunc]. If it returns the invalid zero Addr without error, the
// request is refused with 500, because the client cannot correct it.
func ByClientIP(resolve func(r *http.Request) (netip.Addr, error)) KeyFunc {
	if resolve == nil {
		panic("holdfast: ByClientIP: the resolver is nil: pass RemoteAddr if there is no proxy")
	}
	return orOfText(clientOfText, func(r *http.Request) (Key, error) {
		addr, err := resolve(r)
		if err != nil {
			return Key{}, err
		}
		return clientKey(addr)
	})
}

// RemoteAddr returns the address of the peer of the connection, for [ByClientIP]. Behind a proxy that is the proxy:
// all its clients would be one. It fails for connections that have no IP address.
func RemoteAddr(r *http.Request) (netip.Addr, error) {
	addr, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}, errors.New("holdfast: the remote address of the request is not an IP address and port")
	}
	return addr.Addr(), nil
}

// clientBits is how much of an IPv6 address identifies a client. Providers hand out networks of that size, so
// one client has as many longer addresses as it likes.
const clientBits = 64

// networkOf returns the network that counts as one client: an IPv4 address, even if it is written as an IPv6 one, or
// the /64 network of an IPv6 address, without its zone. It returns the zero Prefix if addr is not valid.
func networkOf(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap()
	bits := addr.BitLen()
	if addr.Is6() {
		bits = clientBits
	}
	network, err := addr.Prefix(bits)
	if err != nil {
		return netip.Prefix{} // of an address that is none
	}
	return network
}

// clientKey returns the key of a client by the [networkOf] its address. The key is the same in all adapters. If addr
// is not valid, the error is none of this package, because the client cannot correct it.
func clientKey(addr netip.Addr) (Key, error) {
	network := networkOf(addr)
	if !network.IsValid() {
		return Key{}, errors.New("holdfast: the address of the client is not known")
	}
	return NewKey(addressPart, network.String())
}

// keyBodyLimit bounds the body of which a key is made, in bytes.
const keyBodyLimit = 64 << 10

// ByForm identifies requests by a field of the form in the body, which must occur exactly once. ByForm reads the body up to 64 KiB,
// whatever [WithBodyLimit] says, and leaves it for the handler. Join it with the user: [ByContext].
//
// The error is [ErrKeyInvalid] for a form that is larger, cannot be read, is malformed or has a Content-Encoding; for one that begins
// with { or [, as JSON labelled as a form does; for a field whose name differs by case or brackets only; if the query, a multipart form
// or a JSON document has the name, the latter at any depth; and for a body of another type, as it might have the name. What was read
// before the guard is missing, unless the ParseForm of net/http or gin's ShouldBindBodyWith read it.
func ByForm(name string) KeyFunc {
	part := "form:" + name
	noForm := func(r *http.Request) (Key, error) {
		return Key{}, otherType(r, "the body is no form", spelled(strings.Split(dotted(name), "."))...)
	}
	find := func(r *http.Request) (Key, error) {
		if mediaType(r) != formType {
			return noForm(r)
		}
		form, err := formOf(r)
		if err != nil {
			return Key{}, err
		}
		if body, _ := peek(r); beginsJSON(body) {
			return noForm(r)
		}
		return form.only(part, name)
	}
	return orOfText(named(part), func(r *http.Request) (Key, error) {
		key, err := find(r)
		if err != nil {
			return Key{}, orElsewhere(r, part, err, name)
		}
		return theQuery.lacks(r, key, name)
	})
}

// ByJSON identifies requests by the string, number or boolean at an RFC 6901 pointer ("/order/id") of the JSON
// document in the body. The type counts: the string "1" and the number 1 are two keys. A number counts as it is written, so 1, 1.0
// and 1e0 are three. ByJSON reads
// the body up to 64 KiB, whatever [WithBodyLimit] says, and leaves it for the handler. Join it with the user:
// [ByContext]. ByJSON panics if pointer is invalid.
//
// The error is [ErrKeyInvalid] for a body of another type than application/json, one that ends in +json, or a form, and for a form that
// begins with { or [; for a body that is larger, cannot be read, is malformed or has a Content-Encoding; for an array or object at the
// pointer; for an object on the path that has a name twice, or in a spelling that differs by case; for arrays and objects that are nested
// more than 32 deep; and if the query or a form has any name of the pointer ("order" or "id" for "/order/id"), since the binders of gin,
// Echo and fiber may read that. They take the Go name of a field that has no tag for forms: VoucherCode counts for voucher_code, but
// if yours is unlike the JSON name, add the tag. For a nested value, these names do not count beside a body of type application/json, in
// lower case, unless the method is GET, HEAD, DELETE or QUERY. What was read before the guard is missing, unless gin's ShouldBindBodyWith
// read it.
func ByJSON(pointer string) KeyFunc {
	if err := jsonfield.CheckPointer(pointer); err != nil {
		panic(err)
	}
	part := "json:" + pointer
	path := jsonfield.Names(pointer)
	names := spelled(path)
	find := func(r *http.Request) (Key, error) {
		if !isJSON(mediaType(r)) {
			return Key{}, otherType(r, "the Content-Type of the body is not application/json", names...)
		}
		body, err := peek(r)
		if err != nil {
			return Key{}, err
		}
		value, err := jsonFieldOf(body, pointer)
		if err != nil {
			return Key{}, err
		}
		return NewKey(part, value)
	}
	return orOfText(named(part), func(r *http.Request) (Key, error) {
		key, err := find(r)
		switch {
		case len(path) > 1 && bindsJSON(r):
			return key, err
		case err != nil:
			return Key{}, orElsewhere(r, part, err, names...)
		}
		return theQuery.lacks(r, key, names...)
	})
}

// bindsJSON reports whether ShouldBind of gin and Bind of Echo take the body of r for JSON and leave out the query. The case of the type
// counts for gin. Otherwise a field of a nested struct gets the value of its name in the query or form. With the methods below, Echo
// takes from the query what the body lacks, and gin with GET all of it.
func bindsJSON(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodDelete, "QUERY":
		return false
	}
	contentType, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return strings.TrimRight(contentType, " ") == "application/json"
}

// mediaType returns the type of the body in lower case, or "" if there is none that can be read.
func mediaType(r *http.Request) string {
	mt, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return mt
}

// peek returns the body of r and leaves it to be read in r.
func peek(r *http.Request) ([]byte, error) {
	coding := r.Header.Get("Content-Encoding")
	switch {
	case coding != "" && !strings.EqualFold(coding, "identity"):
		// Bytes that are a form to the guard could be another one to a handler that decodes them.
		return nil, KeyError(ErrKeyInvalid, "the body has a Content-Encoding")
	case r.Body == nil:
		return nil, nil
	case r.ContentLength > keyBodyLimit:
		return nil, KeyError(ErrKeyInvalid, "the body has more than %d bytes", keyBodyLimit)
	}
	body, err := bufferBody(r.Context(), r.Body, keyBodyLimit)
	if err != nil {
		return nil, err
	}
	r.Body = body
	if err := body.tooLarge(r); err != nil {
		return nil, err
	}
	begin, whole := body.Bytes()
	if !whole || len(begin) > keyBodyLimit { // another guard may have buffered more
		return nil, KeyError(ErrKeyInvalid, "the body has more than %d bytes, or cannot be read", keyBodyLimit)
	}
	return begin, nil
}

// jsonFieldOf returns the string, number or boolean at a pointer of a JSON document, behind its type: "string:1", "number:1",
// "boolean:true".
func jsonFieldOf(body []byte, pointer string) (string, error) {
	value, err := jsonfield.Find(body, pointer)
	var unusable *jsonfield.Error
	switch {
	case !errors.As(err, &unusable):
		if err == nil && value == "string:" {
			return "", KeyError(ErrKeyRequired, "the string at %q of the JSON document is empty", pointer)
		}
		return value, err
	case unusable.Missing:
		return "", KeyError(ErrKeyRequired, "%s", unusable.Text)
	}
	return "", KeyError(ErrKeyInvalid, "%s", unusable.Text)
}
