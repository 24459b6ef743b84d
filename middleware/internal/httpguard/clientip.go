package httpguard

import (
	"errors"
	"net/netip"
)

// clientBits is how much of an IPv6 address tells clients apart. Providers hand out networks of that size, so
// one client has as many longer addresses as it likes.
const clientBits = 64

// NetworkOf returns the network that counts as one client: an IPv4 address, even if it is written as an IPv6 one, or
// the /64 network of an IPv6 address, without its zone. It returns the zero Prefix if addr is not valid.
func NetworkOf(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap()
	bits := addr.BitLen()
	if addr.Is6() {
		bits = clientBits
	}
	network, err := addr.Prefix(bits)
	if err != nil {
		return netip.Prefix{} // of an address that is none
	}
	return network
}

// ClientKey returns the key of a client by the [NetworkOf] its address. The key is the same in all adapters. If addr
// is not valid, the error is none of this package, because the client cannot correct it.
func ClientKey(addr netip.Addr) (Key, error) {
	network := NetworkOf(addr)
	if !network.IsValid() {
		return Key{}, errors.New("holdfast: the address of the client is not known")
	}
	return NewKey(addressPart, network.String())
}
