package nethttp_test

import (
	"errors"
	"net/http"
	"path"
	"testing"

	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// cleaned is a router behind a handler that resolves "..", as the CleanPath of chi does.
func cleaned(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path, r.URL.RawPath = path.Clean(r.URL.Path), ""
		h.ServeHTTP(w, r)
	})
}

// TestPathThatClimbsIsRefused: each spelling of a path with ".." would be a key of its own, and a run of its own.
func TestPathThatClimbsIsRefused(t *testing.T) {
	t.Parallel()
	router := func(h http.Handler) http.Handler { return cleaned(at(h, "/orders", "/cart/{id}/buy", "/shop/")) }
	for _, target := range []string{
		"/a/../orders", "/../orders", "/a/%2e%2e/orders", "/a/.%2E/orders", "/a%2f../orders", "/orders/x/..", "/shop/a/../b",
	} {
		if key, err := routed(httplock.ByRoute(), router, target); !errors.Is(err, httplock.ErrKeyInvalid) {
			t.Errorf("%s: key %v, error %v", target, key, err)
		}
	}
	for _, target := range []string{"/cart/x/../7/buy", "/a/../cart/7/buy"} {
		if key, err := routed(httplock.ByPathValue("id"), router, target); !errors.Is(err, httplock.ErrKeyInvalid) {
			t.Errorf("%s: key %v, error %v", target, key, err)
		}
	}
	for _, target := range []string{"/cart/..7/buy", "/cart/7../buy", "/cart/.../buy", "/cart/7%252e%252e/buy"} {
		if _, err := routed(httplock.ByPathValue("id"), router, target); err != nil {
			t.Errorf("%s: %v", target, err)
		}
	}
}

// TestEscapesOfPathValues: the spelling of a value makes no other resource, and a percent sign is one that the client has
// escaped.
func TestEscapesOfPathValues(t *testing.T) {
	t.Parallel()
	router := func(h http.Handler) http.Handler { return at(h, "/cart/{id}/{item}", "/files/{rest...}") }
	for _, test := range []struct{ name, target, pattern, value string }{
		{"id", "/cart/a7/1", "/cart/{id}", "a7"},
		{"id", "/cart/%61%37/1", "/cart/{id}", "a7"},
		{"id", "/cart/a%2537/1", "/cart/{id}", "a%37"},
		{"id", "/cart/a%2537/a%37", "/cart/{id}", "a%37"}, // whatever the other segments are
		{"id", "/cart/a%2Fb/1", "/cart/{id}", "a/b"},
		{"id", "/cart/100%25/1", "/cart/{id}", "100%"},
		{"rest", "/files/a/%62", "/files/{rest...}", "a/b"},
	} {
		want, err := httplock.PathKey(test.pattern, test.name, test.value)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := routed(httplock.ByPathValue(test.name), router, test.target); err != nil || !got.Equal(want) {
			t.Errorf("%s is not %q, error %v", test.target, test.value, err)
		}
	}
}
