package httpguard

import (
	"net"
	"net/netip"
	"strings"
)

// HostKey returns the key of a host, as the Host of an http.Request has it. The key is in lower case, without the dot
// at the end and without the ports 80 and 443, because behind a proxy the default is unknown. The error is
// [ErrKeyRequired] if there is no host.
func HostKey(host string) (Key, error) { return NewKey("host", normalHost(host)) }

func normalHost(host string) string {
	name, port, err := net.SplitHostPort(host)
	if err != nil { // without port
		name, port = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), ""
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if addr, err := netip.ParseAddr(name); err == nil {
		name = addr.String()
	}
	if port == "" || port == "80" || port == "443" {
		return name
	}
	return net.JoinHostPort(name, port)
}
