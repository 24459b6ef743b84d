package httplock

import (
	"mime"
	"net/http"
	"strings"

	"github.com/holdfast-go/holdfast/middleware"
)

// keyBodyLimit bounds the body of which a key is made, in bytes.
const keyBodyLimit = 64 << 10

// ByForm tells requests apart by a field of the form in the body, which has to be there once; the query in the
// URL does not count. The body is read for it up to 64 KiB, whatever [WithBodyLimit] says, and is there again
// for the handler. Join it with who the client is: [ByContext].
//
// A body of another type than application/x-www-form-urlencoded has no such field: [ErrKeyRequired], also for
// multipart/form-data, which is not read. A larger body, one that cannot be read, is malformed or has a
// Content-Encoding is refused with [ErrKeyInvalid]. What was read before the guard is missing, unless it was
// read by the ParseForm of net/http.
func ByForm(name string) KeyFunc {
	return func(r *http.Request) (Key, error) {
		if mediaType(r) != "application/x-www-form-urlencoded" {
			return Key{}, middleware.KeyError(ErrKeyRequired, "the body is no form")
		}
		if len(r.PostForm) > 0 {
			return single("form:"+name, r.PostForm[name])
		}
		body, err := peek(r)
		if err != nil {
			return Key{}, err
		}
		value, err := middleware.FormField(body, name)
		if err != nil {
			return Key{}, err
		}
		return NewKey("form:"+name, value)
	}
}

// ByJSON tells requests apart by the string, number or boolean at an RFC 6901 pointer ("/order/id") of the JSON
// document in the body: see [middleware.JSONField] for what it refuses. A number counts as it is written. The
// body is read for it up to 64 KiB, whatever [WithBodyLimit] says, and is there again for the handler. Join it
// with who the client is: [ByContext]. Panics if pointer is invalid.
//
// A body of another type than application/json, or one that ends in +json, has no such value:
// [ErrKeyRequired]. A larger body, one that cannot be read, is malformed or has a Content-Encoding is refused
// with [ErrKeyInvalid]. What was read before the guard is missing.
func ByJSON(pointer string) KeyFunc {
	if err := middleware.CheckPointer(pointer); err != nil {
		panic(err)
	}
	return func(r *http.Request) (Key, error) {
		if mt := mediaType(r); mt != "application/json" && !strings.HasSuffix(mt, "+json") {
			return Key{}, middleware.KeyError(ErrKeyRequired, "the body is no JSON")
		}
		body, err := peek(r)
		if err != nil {
			return Key{}, err
		}
		value, err := middleware.JSONField(body, pointer)
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
		return nil, middleware.KeyError(ErrKeyInvalid, "the body has a Content-Encoding")
	case r.Body == nil:
		return nil, nil
	case r.ContentLength > keyBodyLimit:
		return nil, middleware.KeyError(ErrKeyInvalid, "the body has more than %d bytes", keyBodyLimit)
	}
	body, err := middleware.Buffer(r.Context(), r.Body, keyBodyLimit)
	if err != nil {
		return nil, err
	}
	r.Body = body
	begin, whole := body.Bytes()
	if !whole || len(begin) > keyBodyLimit { // another guard may have buffered more
		return nil, middleware.KeyError(ErrKeyInvalid, "the body has more than %d bytes, or cannot be read", keyBodyLimit)
	}
	return begin, nil
}
