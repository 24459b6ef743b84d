package httplock

import (
	"mime"
	"net/http"
	"strings"

	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
)

// keyBodyLimit bounds the body of which a key is made, in bytes.
const keyBodyLimit = 64 << 10

// ByForm identifies requests by a field of the form in the body, which must occur exactly once; the query in the URL
// does not count. ByForm reads the body up to 64 KiB, whatever [WithBodyLimit] says, and leaves it for the handler.
// Join it with the user: [ByContext].
//
// The error is [ErrKeyRequired] for a body of another type than application/x-www-form-urlencoded, even
// multipart/form-data, which is not read. It is [ErrKeyInvalid] for a body that is larger, cannot be read, is
// malformed or has a Content-Encoding. What was read before the guard is missing, unless the ParseForm of net/http
// or gin's ShouldBindBodyWith read it.
func ByForm(name string) KeyFunc {
	return func(r *http.Request) (Key, error) {
		if parts := httpguard.PartsOf(r); parts != nil {
			return parts.New("form:" + name)
		}
		if mediaType(r) != "application/x-www-form-urlencoded" {
			return Key{}, httpguard.KeyError(ErrKeyRequired, "the body is no form")
		}
		if len(r.PostForm) > 0 {
			return single("form:"+name, r.PostForm[name])
		}
		body, err := peek(r)
		if err != nil {
			return Key{}, err
		}
		value, err := httpguard.FormField(body, name)
		if err != nil {
			return Key{}, err
		}
		return NewKey("form:"+name, value)
	}
}

// ByJSON identifies requests by the string, number or boolean at an RFC 6901 pointer ("/order/id") of the JSON
// document in the body. The type counts: the string "1" and the number 1 are two keys. A number counts as it is written, so 1, 1.0
// and 1e0 are three. ByJSON reads
// the body up to 64 KiB, whatever [WithBodyLimit] says, and leaves it for the handler. Join it with the user:
// [ByContext]. ByJSON panics if pointer is invalid.
//
// The error is [ErrKeyRequired] for a body of another type than application/json, or one that ends in +json. It is
// [ErrKeyInvalid] for a body that is larger, cannot be read, is malformed or has a Content-Encoding; for an array or object at
// the pointer; for an object on the path that has a name twice, or in two spellings that differ by case; and for
// arrays and objects that are nested more than 32 deep. What was read
// before the guard is missing, unless gin's ShouldBindBodyWith read it.
func ByJSON(pointer string) KeyFunc {
	if err := httpguard.CheckPointer(pointer); err != nil {
		panic(err)
	}
	return func(r *http.Request) (Key, error) {
		if parts := httpguard.PartsOf(r); parts != nil {
			return parts.New("json:" + pointer)
		}
		if mt := mediaType(r); mt != "application/json" && !strings.HasSuffix(mt, "+json") {
			return Key{}, httpguard.KeyError(ErrKeyRequired, "the Content-Type of the body is not application/json")
		}
		body, err := peek(r)
		if err != nil {
			return Key{}, err
		}
		value, err := httpguard.JSONField(body, pointer)
		if err != nil {
			return Key{}, err
		}
		return NewKey("json:"+pointer, value)
	}
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
		return nil, httpguard.KeyError(ErrKeyInvalid, "the body has a Content-Encoding")
	case r.Body == nil:
		return nil, nil
	case r.ContentLength > keyBodyLimit:
		return nil, httpguard.KeyError(ErrKeyInvalid, "the body has more than %d bytes", keyBodyLimit)
	}
	body, err := httpguard.Buffer(r.Context(), r.Body, keyBodyLimit)
	if err != nil {
		return nil, err
	}
	r.Body = body
	if err := body.TooLarge(); err != nil {
		return nil, err
	}
	begin, whole := body.Bytes()
	if !whole || len(begin) > keyBodyLimit { // another guard may have buffered more
		return nil, httpguard.KeyError(ErrKeyInvalid, "the body has more than %d bytes, or cannot be read", keyBodyLimit)
	}
	return begin, nil
}
