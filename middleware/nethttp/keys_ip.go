package httplock

import (
	"errors"
	"net/http"
	"net/netip"

	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
)

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
	return func(r *http.Request) (Key, error) {
		if parts := httpguard.PartsOf(r); parts != nil {
			return parts.Client()
		}
		addr, err := resolve(r)
		if err != nil {
			return Key{}, err
		}
		return httpguard.ClientKey(addr)
	}
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
