package httplock

import (
	"net/netip"
	"testing"
)

func TestNetworkOf(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"203.0.113.7":           "203.0.113.7/32",
		"::ffff:203.0.113.7":    "203.0.113.7/32",
		"2001:db8:1:2:3:4:5:6":  "2001:db8:1:2::/64",
		"fe80::1:2:3:4%eth0":    "fe80::/64",
		"::1":                   "::/64",
		"::ffff:203.0.113.7%e0": "203.0.113.7/32",
	} {
		if got := networkOf(netip.MustParseAddr(addr)).String(); got != want {
			t.Errorf("NetworkOf(%s) = %s, want %s", addr, got, want)
		}
	}
	if got := networkOf(netip.Addr{}); got != (netip.Prefix{}) {
		t.Errorf("NetworkOf of the zero Addr = %v, want the zero Prefix", got)
	}
}
