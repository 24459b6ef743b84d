package httpguard

import (
	"errors"

	"github.com/holdfast-go/holdfast/internal/jsonfield"
)

// CheckPointer returns an error if pointer is not a pointer of RFC 6901, or one at which [JSONField] can never find a
// value. The empty pointer is that of the whole document.
func CheckPointer(pointer string) error { return jsonfield.CheckPointer(pointer) }

// JSONField returns the string, number or boolean at an RFC 6901 pointer ("/order/id") of a JSON document, for use as
// the value of a key. The result begins with its type, so that the string "1" and the number 1 make two keys:
// "string:1", "number:1", "boolean:true". A number counts as it is written: 1, 1.0 and 1e0 make three keys. So prefer
// strings, or let the handler refuse numbers in another form than its own.
//
// The error is [ErrKeyRequired] if the document is empty or has nothing there, null, or an empty string. It is
// [ErrKeyInvalid] in these cases:
//
//   - There is an array or object.
//   - An object on the path has a name twice, or the name of the pointer in two spellings that differ by case, which
//     decoders treat as one.
//   - Arrays and objects are nested more than 32 deep.
//   - The document is not exactly one JSON value in UTF-8.
//
// Any other error is that of [CheckPointer].
func JSONField(body []byte, pointer string) (string, error) {
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
