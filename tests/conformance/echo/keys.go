package echoconformance

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit/httpkit"
)

// testKeys: a request to Echo has the keys of one to http.ServeMux, without a middleware of the user's.
func testKeys[C Context](t *testing.T, a Adapter[C]) {
	locks := newLocks(t)
	resource := func(pattern, name, value string) func() (httplock.Key, error) {
		return func() (httplock.Key, error) { return httplock.PathKey(pattern, name, value) }
	}
	route := func(pattern string) func() (httplock.Key, error) {
		return func() (httplock.Key, error) { return httplock.RouteKey(http.MethodPost, pattern) }
	}
	for _, test := range []struct {
		pattern, path string
		key           httplock.KeyFunc
		want          func() (httplock.Key, error)
	}{
		{"/orders", "/orders", httplock.ByRoute(), route("/orders")},
		{"/orders/", "/orders/", httplock.ByRoute(), route("/orders/{$}")},
		{"/", "/", httplock.ByRoute(), route("/{$}")},
		{"/cart/:id/checkout", "/cart/7/checkout", httplock.ByRoute(), route("/cart/{id}/checkout")},
		{"/cart/:id/checkout", "/cart/7/checkout", httplock.ByPathValue("id"), resource("/cart/{id}", "id", "7")},
		{"/:id/:idle", "/7/8", httplock.ByPathValue("idle"), resource("/{id}/{idle}", "idle", "8")},
		{"/cart/:id", "/cart/a%2Fb", httplock.ByPathValue("id"), resource("/cart/{id}", "id", "a/b")},
		{"/cart/:id", "/cart/%37", httplock.ByPathValue("id"), resource("/cart/{id}", "id", "7")},
		{"/cart/:id", "/cart/%2537", httplock.ByPathValue("id"), resource("/cart/{id}", "id", "%37")},
		{"/cart-:id", "/cart-7", httplock.ByPathValue("id"), resource("/cart-{id}", "id", "7")},
		{`/carts/check\:out`, "/carts/check:out", httplock.ByRoute(), route("/carts/check:out")},
		{"/files/*", "/files/a/b", httplock.ByRoute(), route("/files/a/b")},
		{"/files/*", "/files/a/b", httplock.ByPathValue("rest"), resource("/files/{rest...}", "rest", "a/b")},
		{"/user", "/user", httplock.ByContext("user"), func() (httplock.Key, error) { return httplock.PrincipalKey("ada") }},
		{"/ip", "/ip", a.ClientIP, nil},
	} {
		e := a.New(nil)
		var got httplock.Key
		var failed error
		var kept *http.Request
		var none C
		look := func(r *http.Request) (httplock.Key, error) {
			kept = r
			if c := a.Context(r); c == none || c.Request() != r {
				t.Errorf("%s: the key function has no context of Echo with its request", test.path)
			}
			got, failed = test.key(r)
			return got, failed
		}
		e.Use(func(next Handler[C]) Handler[C] {
			return func(c C) error {
				c.Set("user", "ada")
				return next(c)
			}
		})
		e.Handle(http.MethodPost, test.pattern, func(C) error { return nil }, a.exclusive(t, locks, look))
		response := httptest.NewRecorder()
		e.ServeHTTP(response, httptest.NewRequest(http.MethodPost, test.path, nil))
		if failed != nil || response.Code != http.StatusOK {
			t.Errorf("%s of %s: status %d, error %v", test.path, test.pattern, response.Code, failed)
			continue
		}
		if a.Context(kept) != none || kept.Context().Value("user") != nil {
			t.Errorf("%s: the request of the key function has Echo's context when that has returned", test.path)
		}
		if test.want == nil {
			continue
		}
		want, err := test.want()
		if err != nil {
			t.Fatal(err)
		}
		if !got.Equal(want) {
			t.Errorf("%s of %s: another key than in net/http", test.path, test.pattern)
		}
	}
}

// testRoutesInGroups: a guard of a group of routes, or of all routes, finds the route with the prefix of the group.
func testRoutesInGroups[C Context](t *testing.T, a Adapter[C]) {
	locks := newLocks(t)
	once := func(prefix string) Middleware[C] {
		guard, err := a.NewOnce(locks, httplock.Keys(httplock.Constant(prefix), httplock.ByRoute(), httplock.ByPathValue("id")), unhurried()...)
		if err != nil {
			t.Fatal(err)
		}
		return guard.Wrap
	}
	ordered := func(c C) error { return c.String(http.StatusCreated, "ordered") }
	e, all := a.New(nil), a.New(nil)
	all.Use(once("all"))
	for _, post := range []func(string, Handler[C]){e.Group("/v1", once("group")), all.Group("/v1")} {
		post("/orders/:id", ordered)
		post("/refunds/:id", ordered)
	}
	for _, srv := range []*httptest.Server{httpkit.Serve(t, e), httpkit.Serve(t, all)} {
		for _, want := range []struct {
			path   string
			status int
		}{{"/v1/orders/1", 201}, {"/v1/orders/2", 201}, {"/v1/refunds/1", 201}, {"/v1/orders/1", 409}} {
			if got := post(t, srv, want.path, "k"); got.Status != want.status {
				t.Errorf("%s: status %d, want %d: %s", want.path, got.Status, want.status, got.Body)
			}
		}
	}
	if got := post(t, httpkit.Serve(t, all), "/nowhere", "k"); got.Status != http.StatusBadRequest {
		t.Errorf("a path without a route: status %d, want 400: %s", got.Status, got.Body)
	}
}

// testBodyOfKeyFunction: a key function that reads a form leaves it for the handler.
func testBodyOfKeyFunction[C Context](t *testing.T, a Adapter[C]) {
	locks := newLocks(t)
	e := a.New(nil)
	key := func(r *http.Request) (httplock.Key, error) {
		return httplock.NewKey("item", a.Context(r).FormValue("item"))
	}
	e.Handle(http.MethodPost, "/", func(c C) error { return c.String(http.StatusOK, c.FormValue("item")) }, a.exclusive(t, locks, key))
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("item=book"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	if e.ServeHTTP(w, r); w.Code != http.StatusOK || w.Body.String() != "book" {
		t.Errorf("answered %d %q", w.Code, w.Body)
	}
}
