package frameworks_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// tellRoute tells the guards the route as http.ServeMux does, because Echo keeps it to itself.
func tellRoute(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r, pattern := c.Request(), strings.Split(c.Path(), "/")
		for i, segment := range pattern {
			switch {
			case strings.HasPrefix(segment, ":"):
				pattern[i] = "{" + segment[1:] + "}"
			case segment == "*":
				pattern[i] = "{rest...}"
			case segment == "" && i > 0 && i == len(pattern)-1:
				pattern[i] = "{$}" // the path ends in a slash
			}
		}
		r.Pattern = strings.Join(pattern, "/")
		for i, value := range c.ParamValues() {
			if text, err := url.PathUnescape(value); r.URL.RawPath != "" && err == nil {
				value = text // Echo leaves it escaped
			}
			r.SetPathValue(strings.Replace(c.ParamNames()[i], "*", "rest", 1), value)
		}
		return next(c)
	}
}

// TestEchoRouteIsDocumented: what docs/http.md tells users of Echo to write is what these tests run.
func TestEchoRouteIsDocumented(t *testing.T) {
	t.Parallel()
	isDocumented(t, "tellRoute", "echo_route_test.go")
}

// isDocumented compares a function in docs/http.md with the one in a file of this package.
func isDocumented(t *testing.T, name, file string) {
	t.Helper()
	function := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, begin, found := strings.Cut(string(text), "\nfunc "+name+"(")
		body, _, ends := strings.Cut(begin, "\n}\n")
		if !found || !ends {
			t.Fatalf("%s has no %s", path, name)
		}
		return body
	}
	if page, run := function("../../../docs/http.md"), function(file); page != run {
		t.Errorf("docs/http.md has\n%s\nwant\n%s", page, run)
	}
}

// echoKey is a route of Echo, a path that it matches, and a key that http.ServeMux has for it.
type echoKey struct {
	pattern, path string
	key           httplock.KeyFunc
	want          func() (httplock.Key, error)
}

func echoKeys() []echoKey {
	resource := func(pattern, name, value string) func() (httplock.Key, error) {
		return func() (httplock.Key, error) { return httplock.PathKey(pattern, name, value) }
	}
	route := func(pattern string) func() (httplock.Key, error) {
		return func() (httplock.Key, error) { return httplock.RouteKey(http.MethodPost, pattern) }
	}
	return []echoKey{
		{"/orders", "/orders", httplock.ByRoute(), route("/orders")},
		{"/orders/", "/orders/", httplock.ByRoute(), route("/orders/{$}")},
		{"/", "/", httplock.ByRoute(), route("/{$}")},
		{"/cart/:id/checkout", "/cart/7/checkout", httplock.ByRoute(), route("/cart/{id}/checkout")},
		{"/cart/:id/checkout", "/cart/7/checkout", httplock.ByPathValue("id"), resource("/cart/{id}", "id", "7")},
		{"/:id/:idle", "/7/8", httplock.ByPathValue("idle"), resource("/{id}/{idle}", "idle", "8")},
		{"/cart/:id", "/cart/a%2Fb", httplock.ByPathValue("id"), resource("/cart/{id}", "id", "a/b")},
		{"/cart/:id", "/cart/%37", httplock.ByPathValue("id"), resource("/cart/{id}", "id", "7")},
		{"/cart/:id", "/cart/%2537", httplock.ByPathValue("id"), resource("/cart/{id}", "id", "%37")},
		{"/files/*", "/files/a/b", httplock.ByRoute(), route("/files/a/b")},
		{"/files/*", "/files/a/b", httplock.ByPathValue("rest"), resource("/files/{rest...}", "rest", "a/b")},
	}
}

// TestEchoKeys: with tellRoute, a request to Echo has the keys of one to http.ServeMux.
func TestEchoKeys(t *testing.T) {
	t.Parallel()
	for _, test := range echoKeys() {
		e := newEcho()
		e.Use(tellRoute)
		var got httplock.Key
		e.POST(test.pattern, func(c echo.Context) (err error) {
			got, err = test.key(c.Request())
			return err
		})
		answer := httptest.NewRecorder()
		e.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, test.path, nil))
		want, err := test.want()
		if err != nil {
			t.Fatal(err)
		}
		if answer.Code != http.StatusOK || !got.Equal(want) {
			t.Errorf("%s of %s: status %d, another key than in net/http", test.path, test.pattern, answer.Code)
		}
	}
}

// TestEchoRouteInGroups: a guard of a group of routes knows the route, with the prefix of the group.
func TestEchoRouteInGroups(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	e := newEcho()
	guard := httplock.Once(locks, httplock.Keys(httplock.ByRoute(), httplock.ByPathValue("id")), unhurried()...)
	group := e.Group("/v1", tellRoute, echo.WrapMiddleware(guard))
	ordered := func(c echo.Context) error { return c.String(http.StatusCreated, "ordered") }
	group.POST("/orders/:id", ordered)
	group.POST("/refunds/:id", ordered)
	srv := httptest.NewServer(e)
	t.Cleanup(srv.Close)
	for _, want := range []struct {
		path   string
		status int
	}{{"/v1/orders/1", 201}, {"/v1/orders/2", 201}, {"/v1/refunds/1", 201}, {"/v1/orders/1", 409}} {
		resp, err := srv.Client().Post(srv.URL+want.path, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want.status {
			t.Errorf("%s: status %d, want %d", want.path, resp.StatusCode, want.status)
		}
	}
}

// TestEchoWithoutRoute: without tellRoute the log names Echo.
func TestEchoWithoutRoute(t *testing.T) {
	t.Parallel()
	e := newEcho()
	var failed error
	e.POST("/orders", func(c echo.Context) error {
		_, failed = httplock.ByRoute()(c.Request())
		return failed
	})
	e.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/orders", nil))
	if failed == nil || !strings.Contains(failed.Error(), "in Echo, tell") {
		t.Errorf("error %v, want one that says what to do in Echo", failed)
	}
}
