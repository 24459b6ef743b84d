package httpguard

import (
	"encoding"
	"fmt"
	"log/slog"
	"reflect"
	"strconv"

	"github.com/google/uuid"
)

// PrincipalKey is that of package httplock, which documents it.
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
