package ginlock

import (
	"fmt"
	"net/netip"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/middleware"
)

// ByKey identifies requests by the value in the *gin.Context under name: the user, put there with c.Set by
// authentication. It may be a string, an integer, a UUID or an [encoding.TextMarshaler], see
// [middleware.PrincipalKey]. If it is absent or its type's zero value, no user is logged in, and the error is
// [ErrScopeRequired]. A value of any other type is refused with 500, even one that has a method String. Use
// [ByPrincipal] for it, whose types the compiler checks.
//
// Only the text of the value makes the name of the lock. So a net/http service with the same user in
// [httplock.ByContext] excludes this one. Join a [Constant] where two kinds of principal could meet in one lock.
func ByKey(name string) KeyFunc {
	return func(c *gin.Context) (Key, error) {
		value, _ := c.Get(name)
		key, err := middleware.PrincipalKey(value)
		if err != nil {
			return Key{}, fmt.Errorf("%w (at %q in the gin.Context)", err, name)
		}
		return key, nil
	}
}

// ByPrincipal identifies requests by the user that the function of finds in the request, by an identity that no other
// user has:
//
//	import ginlock "github.com/holdfast-go/holdfast/middleware/gin"
//
//	user := ginlock.ByPrincipal(func(c *gin.Context) (string, error) {
//		return c.MustGet("session").(*session).Account.Number, nil
//	})
//
// The key is that of [ByKey] for the same text. If it is empty, no user is logged in, and the error is
// [ErrScopeRequired]. An error of the function means the same as one of a [KeyFunc]. ByPrincipal panics if the
// function is nil.
func ByPrincipal(of func(c *gin.Context) (string, error)) KeyFunc {
	if of == nil {
		panic("holdfast: ByPrincipal: the function is nil")
	}
	return func(c *gin.Context) (Key, error) {
		user, err := of(c)
		if err != nil {
			return Key{}, err
		}
		return PrincipalKey(user)
	}
}

// PrincipalKey returns the key that [ByKey] makes of that value in the *gin.Context, and [ByPrincipal] of that text, for
// [Join]: the user whose request it was. See [middleware.PrincipalKey].
func PrincipalKey(value any) (Key, error) { return middleware.PrincipalKey(value) }

// ByClientIP identifies requests by the address of the client as c.ClientIP returns it: an IPv4 address or the /64
// network of an IPv6 address. Many clients may share one, so prefer the logged-in user: [ByKey].
//
// Call SetTrustedProxies on the engine, with nil if there is no proxy in front of it. By default gin trusts every
// client. A client that sends its own X-Forwarded-For header gets any address, and with it the lock of another client,
// or one that no other client asks for.
func ByClientIP() KeyFunc {
	return func(c *gin.Context) (Key, error) {
		// What is no address, and may be text of the client's, becomes the zero Addr, which is no client.
		addr, _ := netip.ParseAddr(c.ClientIP())
		return middleware.ClientKey(addr)
	}
}
