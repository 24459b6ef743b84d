package httpguard

import (
	"net/http"
	"net/netip"
)

// The names of the parts of a key that authentication or the network has chosen, and not the client.
const (
	principalPart = "context"
	addressPart   = "ip"
)

// ownerOf returns who answers for what a request takes of the guard, of whose key the client may choose a part. It is the
// user or the address in the key, or else the scope in front of an Idempotency-Key. If the key has neither, it is the
// address of the connection: see [addressOf]. Without an address it is the whole key.
func ownerOf(key Key, address string) string {
	var known Key
	for _, p := range key.parts {
		if p.name == principalPart || p.name == addressPart {
			known.parts = append(known.parts, p)
		}
	}
	last := len(key.parts) - 1
	switch {
	case !known.IsZero():
		return known.Hash()
	case last > 0 && key.parts[last].name == idempotencyKey:
		return Key{parts: key.parts[:last]}.Hash()
	case address != "":
		return address
	}
	return key.Hash()
}

// addressOf returns the network of the client, or of the proxy in front, of a request whose key is not known. It is shorter
// than the hash of a key.
func addressOf(r *http.Request) string {
	addr, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil { // of a socket without addresses, for instance
		return "local"
	}
	return NetworkOf(addr.Addr()).String()
}
