package frameworks_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gorilla/mux"

	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/conformance/http"
)

// muxRoute tells the guards the route as http.ServeMux does, because gorilla/mux keeps it to itself.
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
	conform(t, false, func(routes ...httpconformance.Route) http.Handler {
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
	for _, test := range echoKeys() {
		if strings.Contains(test.pattern, "*") {
			continue
		}
		pattern := strings.NewReplacer(":idle", "{idle}", ":id", "{id}").Replace(test.pattern)
		router := mux.NewRouter().UseEncodedPath()
		var got httplock.Key
		var failed error
		router.Handle(pattern, muxRoute(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
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
	isDocumented(t, "muxRoute", "gorilla_test.go")
}
