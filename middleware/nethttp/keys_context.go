package httplock

import (
	"fmt"
	"net/http"

	"github.com/holdfast-go/holdfast/middleware"
)

// ByContext tells requests apart by what the context of the request holds at ctxKey: the user, put there by
// authentication. It may be a string, an integer, or have a method String. If it is absent or its type's zero
// value, nobody is logged in, and the error is [ErrScopeRequired].
//
// The name of the lock is made of the value alone, not of ctxKey, whose identity may change from build to
// build: join a [Constant] where two kinds of principal could meet in one lock.
func ByContext(ctxKey any) KeyFunc {
	if ctxKey == nil {
		panic("holdfast: ByContext: the context key is nil")
	}
	return func(r *http.Request) (Key, error) {
		key, err := PrincipalKey(r.Context().Value(ctxKey))
		if err != nil {
			return Key{}, fmt.Errorf("%w (the value at %T in the context)", err, ctxKey)
		}
		return key, nil
	}
}

// PrincipalKey returns the key that [ByContext] makes of that value in the context, for [Join]: the user whose
// request it was. See [middleware.PrincipalKey].
func PrincipalKey(value any) (Key, error) { return middleware.PrincipalKey(value) }
