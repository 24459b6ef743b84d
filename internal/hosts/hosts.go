// Package hosts distinguishes requests for some names from others, for pages that may have no login: any site that is open in
// a browser can let its own name point to the address of such a page (DNS rebinding).
package hosts

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Check returns an error if there are no names, or if one is neither a host name nor an IP address, or has a port.
func Check(names []string) error {
	if len(names) == 0 {
		return errors.New("no host is named")
	}
	for _, name := range names {
		if _, err := netip.ParseAddr(name); err != nil && (name == "" || strings.ContainsAny(name, ":/[] ")) {
			return fmt.Errorf("%q: a host name or an IP address is wanted, without a port", name)
		}
	}
	return nil
}

// Serves returns true if a request is for one of the names, with any port, or if there are no names.
func Serves(names []string, r *http.Request) bool {
	if len(names) == 0 {
		return true
	}
	name := r.Host
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	name = strings.Trim(name, "[]") // of an IPv6 address
	return slices.ContainsFunc(names, func(host string) bool { return strings.EqualFold(host, name) })
}
