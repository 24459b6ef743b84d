package ginlock

import (
	"errors"
	"net/http"
	"net/netip"

	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// ByClientIP identifies requests by the address of the client as c.ClientIP returns it: an IPv4 address or the /64
// network of an IPv6 address. Many clients may share one, so prefer the logged-in user: [httplock.ByContext].
//
// Call SetTrustedProxies on the engine, with nil if there is no proxy in front of it. By default gin trusts every
// client. A client that sends its own X-Forwarded-For header gets any address, and with it the lock of another client,
// or one that no other client asks for.
func ByClientIP() httplock.KeyFunc {
	return httplock.ByClientIP(func(r *http.Request) (netip.Addr, error) {
		c := Context(r)
		if c == nil {
			return netip.Addr{}, errors.New("holdfast: ginlock.ByClientIP is for guards of this package")
		}
		// What is no address, and may be text of the client's, becomes the zero Addr, which is no client.
		addr, _ := netip.ParseAddr(c.ClientIP())
		return addr, nil
	})
}
