package httplock

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
)

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
	return func(r *http.Request) (Key, error) {
		if parts := httpguard.PartsOf(r); parts != nil {
			return parts.Principal()
		}
		key, err := PrincipalKey(r.Context().Value(ctxKey))
		if err != nil {
			return Key{}, fmt.Errorf("%w (the value at %s in the context)", err, nameOf(ctxKey))
		}
		return key, nil
	}
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
// The key is that of [ByContext] for the same text. If it is empty, no user is logged in, and the error is
// [ErrScopeRequired]. An error of the function means the same as one of a [KeyFunc]. ByPrincipal panics if the
// function is nil.
func ByPrincipal(of func(r *http.Request) (string, error)) KeyFunc {
	if of == nil {
		panic("holdfast: ByPrincipal: the function is nil")
	}
	return func(r *http.Request) (Key, error) {
		if parts := httpguard.PartsOf(r); parts != nil {
			return parts.Principal()
		}
		user, err := of(r)
		if err != nil {
			return Key{}, err
		}
		return PrincipalKey(user)
	}
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
// A value of any other type is a mistake in the program, whose error is none of this package. A [fmt.Stringer] is not
// enough: String is for people to read and may be masked or shortened, which would make one user of two.
func PrincipalKey(value any) (Key, error) { return httpguard.PrincipalKey(value) }
