package nethttp_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// at is a mux whose patterns all have the same handler.
func at(h http.Handler, patterns ...string) http.Handler {
	mux := http.NewServeMux()
	for _, pattern := range patterns {
		mux.Handle(pattern, h)
	}
	return mux
}

// stripped is a mux that has h under each of the prefixes.
func stripped(h http.Handler, prefixes ...string) http.Handler {
	mux := http.NewServeMux()
	for _, prefix := range prefixes {
		mux.Handle(prefix+"/", http.StripPrefix(prefix, h))
	}
	return mux
}

func rewritten(h http.Handler, to string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path, r.URL.RawPath = to, ""
		h.ServeHTTP(w, r)
	})
}

// routed returns the key that a guard makes of a POST of that target behind a router.
func routed(key httplock.KeyFunc, router func(http.Handler) http.Handler, target string) (got httplock.Key, err error) {
	err = errors.New("not reached")
	h := router(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got, err = key(r) }))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, target, nil))
	return got, err
}

// routers have two targets each, whose resources and routes are the same or not.
var routers = map[string]struct {
	router    func(http.Handler) http.Handler
	one, two  string
	sameRoute bool
}{
	"two prefixes": {
		func(h http.Handler) http.Handler { return stripped(at(h, "POST /orders"), "/customers", "/suppliers") },
		"/customers/orders", "/suppliers/orders", false,
	},
	"two prefixes of prefixes": {
		func(h http.Handler) http.Handler {
			return stripped(stripped(at(h, "/orders"), "/v1", "/v2"), "/customers", "/suppliers")
		},
		"/customers/v1/orders", "/suppliers/v1/orders", false,
	},
	"one pattern at two depths": {
		func(h http.Handler) http.Handler { return stripped(at(h, "/api/orders", "/orders"), "/api") },
		"/api/api/orders", "/api/orders", false,
	},
	"path value behind a prefix": {
		func(h http.Handler) http.Handler { return stripped(at(h, "POST /orders/{id}"), "/customers") },
		"/customers/orders/7", "/customers/orders/8", true,
	},
	"spelling": {
		func(h http.Handler) http.Handler { return stripped(at(h, "/orders"), "/v1") },
		"/v1/orders", "/v1/%6Frders", true,
	},
	"escaped slash in a value": {
		func(h http.Handler) http.Handler { return stripped(at(h, "/orders/{id}/{item}"), "/v1") },
		"/v1/orders/a/b", "/v1/orders/a%2Fb/c%2Fd", true,
	},
	"mux in a mux": {
		func(h http.Handler) http.Handler { return at(at(h, "/shop/orders", "/shop/returns"), "/shop/") },
		"/shop/orders", "/shop/returns", false,
	},
	"guard around a mux": {
		func(h http.Handler) http.Handler { return at(h, "/shop/") },
		"/shop/orders", "/shop/returns", false,
	},
	"guard around a mux without prefix": {
		func(h http.Handler) http.Handler { return stripped(at(h, "/"), "/shop", "/store") },
		"/shop/orders", "/store/orders", false,
	},
	"guard behind the prefix": {
		func(h http.Handler) http.Handler { return at(http.StripPrefix("/shop", h), "/shop/") },
		"/shop/orders", "/shop/returns", false,
	},
	"guard behind the prefix of an exact pattern": {
		func(h http.Handler) http.Handler { return at(http.StripPrefix("/shop", h), "/shop/{id}") },
		"/shop/7", "/shop/8", true,
	},
	"rest of a path": {
		func(h http.Handler) http.Handler { return at(h, "/shop/{rest...}") },
		"/shop/orders", "/shop/returns", false,
	},
	"index of a directory": {
		func(h http.Handler) http.Handler { return at(h, "/shop/{$}", "/shop") },
		"/shop/", "/shop", false,
	},
	"two hosts in patterns": {
		func(h http.Handler) http.Handler { return at(h, "a.example/orders", "b.example/orders") },
		"http://a.example/orders", "http://b.example/orders", false,
	},
	"two hosts without patterns": {
		func(h http.Handler) http.Handler { return at(h, "/orders") },
		"http://a.example/orders", "/orders", true,
	},
	"query": {
		func(h http.Handler) http.Handler { return stripped(at(h, "/orders"), "/shop") },
		"/shop/orders?a=/b", "/shop/orders", true,
	},
	"another path put in place": {
		func(h http.Handler) http.Handler { return rewritten(at(h, "/orders/{id}"), "/orders/7") },
		"/legacy.php", "/old.php", true,
	},
}

func TestRoutesAreToldApart(t *testing.T) {
	t.Parallel()
	for name, test := range routers {
		one, err := routed(httplock.ByRoute(), test.router, test.one)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		two, err := routed(httplock.ByRoute(), test.router, test.two)
		if err != nil || one.Equal(two) != test.sameRoute {
			t.Errorf("%s: same key %v, want %v; error %v", name, one.Equal(two), test.sameRoute, err)
		}
	}
}

// TestMethodOfPatternIsNoRoute: a route keeps its key when its pattern gets a method.
func TestMethodOfPatternIsNoRoute(t *testing.T) {
	t.Parallel()
	keyed := func(pattern string) httplock.Key {
		t.Helper()
		key, err := routed(httplock.ByRoute(), func(h http.Handler) http.Handler { return at(h, pattern) }, "/orders/7")
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	want := keyed("/orders/{id}")
	for _, pattern := range []string{"POST /orders/{id}", "POST \t/orders/{order}", "/%6Frders/{id}"} {
		if !keyed(pattern).Equal(want) {
			t.Errorf("%s makes another key", pattern)
		}
	}
}

// TestRouteThatDoesNotFitIsRefused: a pattern that is not that of the path says nothing about the request.
func TestRouteThatDoesNotFitIsRefused(t *testing.T) {
	t.Parallel()
	for pattern, path := range map[string]string{
		"/orders": "/returns", "/orders/{id}": "/orders", "orders": "/orders", "": "/orders",
		"/{id}": "/",
	} {
		r := httptest.NewRequest(http.MethodPost, path, nil)
		r.Pattern = pattern
		if key, err := httplock.ByRoute()(r); !errors.Is(err, httplock.ErrNoRoute) || !key.IsZero() {
			t.Errorf("pattern %q, path %q: key %v, error %v", pattern, path, key, err)
		}
	}
}

// TestRequestWithoutTarget: a request that was made in the process has no target of its own.
func TestRequestWithoutTarget(t *testing.T) {
	t.Parallel()
	var keys []httplock.Key
	h := at(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		key, err := httplock.ByRoute()(r)
		if err != nil {
			t.Error(err)
		}
		keys = append(keys, key)
	}), "/orders/{id}")
	for _, target := range []string{"", "/orders/7", "http://a.example/orders/7?a=b", "%"} {
		r := httptest.NewRequest(http.MethodPost, "/orders/7", nil)
		r.RequestURI = target
		h.ServeHTTP(httptest.NewRecorder(), r)
		if last := keys[len(keys)-1]; !last.Equal(keys[0]) {
			t.Errorf("target %q makes another key", target)
		}
	}
}

// TestLongPathIsARoute: a path may be longer than a value that a client chooses.
func TestLongPathIsARoute(t *testing.T) {
	t.Parallel()
	router := func(h http.Handler) http.Handler { return at(h, "/") }
	long := "/" + strings.Repeat("a", 1000)
	one, err := routed(httplock.ByRoute(), router, long)
	if err != nil {
		t.Fatal(err)
	}
	if two, err := routed(httplock.ByRoute(), router, long+"b"); err != nil || one.Equal(two) {
		t.Errorf("two long paths: same key, or error %v", err)
	}
}

// TestPathValuesAreResources: the same value is another thing in another place, and the same thing for all that can be
// done with it.
func TestPathValuesAreResources(t *testing.T) {
	t.Parallel()
	shop := func(h http.Handler) http.Handler {
		mux := http.NewServeMux()
		for _, prefix := range []string{"/customers", "/suppliers"} {
			mux.Handle(prefix+"/", http.StripPrefix(prefix, at(h, "/orders/{id}", "/orders/{id}/pay")))
		}
		for _, pattern := range []string{
			"/cart/{id}", "/cart/{id}/checkout", "/cart/{cart}/items/{id}", "/invoice/{id}", "/{id}",
		} {
			mux.Handle(pattern, h)
		}
		return mux
	}
	keyed := func(target string) httplock.Key {
		t.Helper()
		key, err := routed(httplock.ByPathValue("id"), shop, target)
		if err != nil {
			t.Fatalf("%s: %v", target, err)
		}
		return key
	}
	seen := map[string]string{}
	for _, path := range []string{
		"/cart/7", "/cart/8", "/invoice/7", "/7", "/customers/orders/7", "/suppliers/orders/7", "/cart/1/items/7",
	} {
		hash := keyed(path).Hash()
		if other, dup := seen[hash]; dup {
			t.Errorf("%s and %s are one resource", path, other)
		}
		seen[hash] = path
	}
	for one, two := range map[string]string{
		"/cart/7": "/cart/7/checkout", "/customers/orders/7": "/customers/orders/7/pay", "/cart/1/items/7": "/cart/2/items/7",
	} {
		if !keyed(one).Equal(keyed(two)) {
			t.Errorf("%s and %s are two resources", one, two)
		}
	}
}
