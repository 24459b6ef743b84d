package middleware

import (
	"fmt"
	"reflect"
)

// PrincipalKey returns the key of a user, as authentication has left it with the request. It is the same
// wherever an adapter has found it, so that services of all frameworks exclude each other for one user. The
// value may be a string, an integer, or have a method String. If it is nil, the zero value of its type or
// without text, nobody is logged in, and the error is [ErrScopeRequired]. A value of any other type is a
// mistake in the program, whose error is none of this package.
func PrincipalKey(value any) (Key, error) {
	if value == nil || reflect.ValueOf(value).IsZero() {
		return Key{}, ErrScopeRequired
	}
	text, err := principal(value)
	if err != nil {
		return Key{}, err
	}
	if text == "" {
		return Key{}, fmt.Errorf("%w: a %T without text", ErrScopeRequired, value)
	}
	return NewKey("context", text)
}

func principal(value any) (string, error) {
	if s, ok := value.(fmt.Stringer); ok {
		return s.String(), nil
	}
	v := reflect.ValueOf(value)
	switch {
	case v.Kind() == reflect.String:
		return v.String(), nil
	case v.CanInt(), v.CanUint():
		return fmt.Sprint(v), nil
	}
	return "", fmt.Errorf("holdfast: a %T is no principal: it is no string, integer or fmt.Stringer", value)
}
