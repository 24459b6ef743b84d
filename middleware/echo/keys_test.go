package echolock_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v5"

	echolock "github.com/holdfast-go/holdfast/middleware/echo"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// TestKeys: a request to Echo has the keys of one to http.ServeMux, without a middleware of the user's.
func TestKeys(t *testing.T) {
	t.Parallel()
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
		{"/ip", "/ip", echolock.ByClientIP(), nil},
	} {
		e := newEcho()
		var got httplock.Key
		var failed error
		var kept *http.Request
		look := func(r *http.Request) (httplock.Key, error) {
			kept = r
			if c := echolock.Context(r); c == nil || c.Request() != r {
				t.Errorf("%s: the key function has no context of Echo with its request", test.path)
			}
			got, failed = test.key(r)
			return got, failed
		}
		e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) error {
				c.Set("user", "ada")
				return next(c)
			}
		})
		e.POST(test.pattern, func(*echo.Context) error { return nil }, echolock.Exclusive(locks.Mutex, look))
		response := httptest.NewRecorder()
		e.ServeHTTP(response, httptest.NewRequest(http.MethodPost, test.path, nil))
		if failed != nil || response.Code != http.StatusOK {
			t.Errorf("%s of %s: status %d, error %v", test.path, test.pattern, response.Code, failed)
			continue
		}
		if echolock.Context(kept) != nil || kept.Context().Value("user") != nil {
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

// TestRoutesInGroups: a guard of a group of routes, or of all routes, finds the route with the prefix of the group.
func TestRoutesInGroups(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	once := func(prefix string) echo.MiddlewareFunc {
		return echolock.Once(locks, httplock.Keys(httplock.Constant(prefix), httplock.ByRoute(), httplock.ByPathValue("id")),
			httplock.WithAskTimeout(patience), httplock.WithFinishTimeout(patience))
	}
	ordered := func(c *echo.Context) error { return c.String(http.StatusCreated, "ordered") }
	e, all := newEcho(), newEcho()
	group := e.Group("/v1", once("group"))
	all.Use(once("all"))
	for _, post := range []func(string, echo.HandlerFunc, ...echo.MiddlewareFunc) echo.RouteInfo{group.POST, all.Group("/v1").POST} {
		post("/orders/:id", ordered)
		post("/refunds/:id", ordered)
	}
	for _, srv := range []*httptest.Server{serve(t, e), serve(t, all)} {
		for _, want := range []struct {
			path   string
			status int
		}{{"/v1/orders/1", 201}, {"/v1/orders/2", 201}, {"/v1/refunds/1", 201}, {"/v1/orders/1", 409}} {
			if a := post(t, srv, want.path, "k"); a.status != want.status {
				t.Errorf("%s: status %d, want %d: %s", want.path, a.status, want.status, a.body)
			}
		}
	}
	if a := post(t, serve(t, all), "/nowhere", "k"); a.status != http.StatusBadRequest {
		t.Errorf("a path without a route: status %d, want 400: %s", a.status, a.body)
	}
}

// TestBodyOfKeyFunction: a key function that reads a form leaves it for the handler.
func TestBodyOfKeyFunction(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	e := newEcho()
	key := func(r *http.Request) (httplock.Key, error) {
		return httplock.NewKey("item", echolock.Context(r).FormValue("item"))
	}
	e.POST("/", func(c *echo.Context) error { return c.String(http.StatusOK, c.FormValue("item")) }, echolock.Exclusive(locks.Mutex, key))
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("item=book"))
	r.Header.Set("Content-Type", echo.MIMEApplicationForm)
	w := httptest.NewRecorder()
	if e.ServeHTTP(w, r); w.Code != http.StatusOK || w.Body.String() != "book" {
		t.Errorf("answered %d %q", w.Code, w.Body)
	}
}
