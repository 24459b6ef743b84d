package nethttp_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit/httpkit"
)

func TestByClientIP(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"192.0.2.7":                  "192.0.2.7/32",
		"::ffff:192.0.2.7":           "192.0.2.7/32",
		"::ffff:192.0.2.7%eth0":      "192.0.2.7/32",
		"::1":                        "::/64",
		"2001:db8:1:2:3:4:5:6":       "2001:db8:1:2::/64",
		"2001:db8:1:2::":             "2001:db8:1:2::/64",
		"2001:db8:1:2:ffff::1%zone7": "2001:db8:1:2::/64",
		"2001:db8:1:3::":             "2001:db8:1:3::/64",
		"fe80::1%eth0":               "fe80::/64",
	} {
		resolve := func(*http.Request) (netip.Addr, error) { return netip.ParseAddr(address) }
		got, err := httplock.ByClientIP(resolve)(request(nil))
		if err != nil {
			t.Errorf("%s: %v", address, err)
		}
		wantKey, _ := httplock.NewKey("ip", want)
		if !got.Equal(wantKey) {
			t.Errorf("%s: not the key of %s", address, want)
		}
	}
}

func TestClientIPUnknown(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fails error
		want  error // nil: one of the server's own
	}{
		"no address":      {nil, nil},
		"own error":       {errors.New("broken"), nil},
		"refused":         {httplock.ErrKeyInvalid, httplock.ErrKeyInvalid},
		"nobody is known": {httplock.ErrScopeRequired, httplock.ErrScopeRequired},
	} {
		resolve := func(*http.Request) (netip.Addr, error) { return netip.Addr{}, test.fails }
		_, err := httplock.ByClientIP(resolve)(request(nil))
		if err == nil || test.fails != nil && !errors.Is(err, test.fails) {
			t.Errorf("%s: error %v, want %v", name, err, test.fails)
		}
		for _, kind := range []error{httplock.ErrKeyRequired, httplock.ErrKeyInvalid, httplock.ErrScopeRequired} {
			if errors.Is(err, kind) != (kind == test.want) {
				t.Errorf("%s: error %v, want kind %v", name, err, test.want)
			}
		}
	}
}

func TestRemoteAddr(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 1)
	srv := httpkit.Serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		addr, err := httplock.RemoteAddr(r)
		if err != nil {
			t.Error(err)
		}
		seen <- addr.String()
	}))
	httpkit.Post(t.Context(), srv, "ada", "7").Want(t, http.StatusOK)
	if got := httpkit.Receive(t, seen, "the address"); got != "127.0.0.1" && got != "::1" {
		t.Errorf("address %s, want that of this machine", got)
	}
	r := httptest.NewRequest("POST", "/", nil)
	for _, r.RemoteAddr = range []string{"", "@", "192.0.2.7", "host:80"} {
		if addr, err := httplock.RemoteAddr(r); err == nil {
			t.Errorf("%q: address %v, want an error", r.RemoteAddr, addr)
		}
	}
}
