package frameworks_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/gorilla/mux"

	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/conformance/http"
)

// muxRoute sets the pattern and the path values as http.ServeMux does, because gorilla/mux does not.
func muxRoute(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if route := mux.CurrentRoute(r); route != nil {
			r.Pattern, _ = route.GetPathTemplate()
			for name, value := range mux.Vars(r) {
				r.SetPathValue(name, value)
			}
		}
		next.ServeHTTP(w, r)
	})
}

func TestGorillaMux(t *testing.T) {
	conform(t, func(routes ...httpconformance.Route) http.Handler {
		router := mux.NewRouter()
		router.Use(muxRoute)
		for _, route := range routes {
			handler := route.Handler
			for i := len(route.Guards) - 1; i >= 0; i-- {
				handler = asMiddleware(route.Guards[i])(handler)
			}
			router.Handle(route.Path, handler)
		}
		return router
	})
}

// TestGorillaMuxKeys: with muxRoute, a request has the keys of one to http.ServeMux.
func TestGorillaMuxKeys(t *testing.T) {
	t.Parallel()
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
		{"/cart/{id}/checkout", "/cart/7/checkout", httplock.ByRoute(), route("/cart/{id}/checkout")},
		{"/cart/{id}/checkout", "/cart/7/checkout", httplock.ByPathValue("id"), resource("/cart/{id}", "id", "7")},
		{"/{id}/{idle}", "/7/8", httplock.ByPathValue("idle"), resource("/{id}/{idle}", "idle", "8")},
		{"/cart/{id}", "/cart/a%2Fb", httplock.ByPathValue("id"), resource("/cart/{id}", "id", "a/b")},
		{"/cart/{id}", "/cart/%37", httplock.ByPathValue("id"), resource("/cart/{id}", "id", "7")},
		{"/cart/{id}", "/cart/%2537", httplock.ByPathValue("id"), resource("/cart/{id}", "id", "%37")},
	} {
		router := mux.NewRouter().UseEncodedPath()
		var got httplock.Key
		var failed error
		router.Handle(test.pattern, muxRoute(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			got, failed = test.key(r)
		})))
		router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, test.path, nil))
		want, err := test.want()
		if err != nil {
			t.Fatal(err)
		}
		if failed != nil || !got.Equal(want) {
			t.Errorf("%s of %s: error %v, another key than in net/http", test.path, test.pattern, failed)
		}
	}
}

// TestGorillaMuxRouteIsDocumented: what docs/http.md tells users of gorilla/mux to write is what these tests run.
func TestGorillaMuxRouteIsDocumented(t *testing.T) {
	t.Parallel()
	function := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, begin, found := strings.Cut(string(text), "\nfunc muxRoute(")
		body, _, ends := strings.Cut(begin, "\n}\n")
		if !found || !ends {
			t.Fatalf("%s has no muxRoute", path)
		}
		return body
	}
	if page, run := function("../../../docs/http.md"), function("gorilla_test.go"); page != run {
		t.Errorf("docs/http.md has\n%s\nwant\n%s", page, run)
	}
}
