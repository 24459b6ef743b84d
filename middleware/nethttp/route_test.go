package httplock

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

func mustRoute(t testing.TB, pattern string) Key {
	t.Helper()
	key, err := RouteKey(http.MethodPost, pattern)
	if err != nil {
		t.Fatalf("%s: %v", pattern, err)
	}
	return key
}

// TestPatternsOfRouters: what a pattern matches makes the route, not how it is written.
func TestPatternsOfRouters(t *testing.T) {
	t.Parallel()
	for route, patterns := range map[string][]string{
		"/":                   {"/", "/{$}", "POST /", "GET /{$}"},
		"/orders":             {"/orders", "POST /orders", "PUT \t /orders", "/%6Frders", "//orders", "/./orders"},
		"/orders/":            {"/orders/", "/orders/{$}"},
		"/a%2Fb":              {"/a%2Fb", "/a%2fb"},
		"/%7Bid%7D":           {"/%7Bid%7D", "/%7bid}"},
		"/cart/{}":            {"/cart/{id}", "/cart/{cart}"},
		"/cart/{}/{}":         {"/cart/{id}/{item}"},
		"/{:[0-9]+}":          {"/{id:[0-9]+}", "/{n:[0-9]+}"},
		"/{:[^/{]{4}/?}":      {"/{id:[^/{]{4}/?}"},
		"/{}-{:.+}.html":      {"/{year}-{month:.+}.html"},
		"a.example/orders/{}": {"a.example/orders/{id}", "POST A.Example/orders/{id}"},
	} {
		want, err := Join(mustKey(t, "method", "POST", "route", route))
		if err != nil {
			t.Fatal(err)
		}
		for _, pattern := range patterns {
			if got := mustRoute(t, pattern); !got.Equal(want) {
				t.Errorf("%s is not the route %s", pattern, route)
			}
		}
	}
}

// TestWildcardsOfRouters: a wildcard names a resource by what is in front of it.
func TestWildcardsOfRouters(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ pattern, name, resource string }{
		{"/cart/{id}", "id", "/cart/{}"},
		{"POST a.example/cart/{id}/pay", "id", "a.example/cart/{}"},
		{"/cart/{id}/{item}", "item", "/cart/{}/{}"},
		{"/{year}-{month}", "year", "/{}"},
		{"/{year}-{month}", "month", "/{}-{}"},
		{"/{id:[0-9]+}/pay", "id", "/{}"},
		{"/files/{path...}", "path", "/files/{}"},
		{"/files/*", "*", "/files/{}"},
	} {
		got, err := PathKey(test.pattern, test.name, "7")
		if want := mustKey(t, "resource", test.resource, "path", "7"); err != nil || !got.Equal(want) {
			t.Errorf("%s of %s is not the resource %s, error %v", test.name, test.pattern, test.resource, err)
		}
	}
	for _, pattern := range []string{"/cart", "/cart/{ids}", "/cart/%7Bid%7D", "cart", ""} {
		if key, err := PathKey(pattern, "id", "7"); !errors.Is(err, ErrNoRoute) || !key.IsZero() {
			t.Errorf("%q: key %v, error %v", pattern, key, err)
		}
	}
}

// TestResourceOfAnOuterRouter: a router around the one whose pattern is known has set the path value, as a sub-router of
// chi does in some versions.
func TestResourceOfAnOuterRouter(t *testing.T) {
	t.Parallel()
	keyed := func(path, pattern string) Key {
		t.Helper()
		r := httptest.NewRequest(http.MethodPost, path, nil)
		key, err := routing{Pattern: pattern}.PathKey(r, "id", "7")
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	want, err := PathKey("/customers/{id}/orders", "id", "7")
	if err != nil {
		t.Fatal(err)
	}
	for path, pattern := range map[string]string{
		"/customers/7/orders": "/orders", "/customers/7/items/7": "/items/{item}", "/customers/7/": "",
	} {
		if !keyed(path, pattern).Equal(want) {
			t.Errorf("%s: not customer 7", path)
		}
	}
	if keyed("/suppliers/7/orders", "/orders").Equal(want) {
		t.Error("supplier 7 is customer 7")
	}
	// A part of a segment: what is behind it would count too, so one thing would have many keys.
	for path, pattern := range map[string]string{"/customers/v7/a": "", "/customers/v7/items/8": "/items/{item}"} {
		r := httptest.NewRequest(http.MethodPost, path, nil)
		if key, err := (routing{Pattern: pattern}).PathKey(r, "id", "7"); !errors.Is(err, ErrNoRoute) {
			t.Errorf("%s: key %v, error %v", path, key, err)
		}
	}
}

// FuzzRoutes wants the path of a request to be the same route as a pattern, once the "*" of chi is escaped in it.
func FuzzRoutes(f *testing.F) {
	for _, path := range []string{"/", "/orders", "/a/b/", "/a%2Fb", "//a/./b", "/%7Bid%7D", "/a%zz", "/*", "/{$}", "/a/..", "%2e."} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		r, err := http.NewRequest(http.MethodPost, path, nil)
		if err != nil || r.URL.Host != "" || r.URL.Opaque != "" {
			t.Skip("no path")
		}
		whole := routing{Pattern: "/"}
		key, err := whole.Key(r)
		switch up := slices.Contains(strings.Split(r.URL.Path, "/"), ".."); {
		case up && errors.Is(err, ErrKeyInvalid):
			return
		case up || err != nil:
			t.Fatalf("key %v, error %v", key, err)
		}
		pattern := "/" + strings.ReplaceAll(r.URL.EscapedPath(), "*", "%2A")
		if same, err := RouteKey(http.MethodPost, pattern); err != nil || !same.Equal(key) {
			t.Errorf("%q as a pattern is another route: %v", pattern, err)
		}
	})
}
