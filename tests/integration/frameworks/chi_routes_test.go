package frameworks_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-chi/chi/v5"
	chimiddleware "github.com/go-chi/chi/v5/middleware"

	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// chiKeys are the keys that a guard of each place makes of a request to a router of chi with sub-routers.
type chiKeys struct{ use, with, group httplock.Key }

// of returns the keys of a POST of path, the zero Key for places that it does not reach or where the key fails.
func (chiKeys) of(key httplock.KeyFunc, path string) (found chiKeys) {
	keep := func(place *httplock.Key) func(http.Handler) http.Handler {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				*place, _ = key(r)
				next.ServeHTTP(w, r)
			})
		}
	}
	none := func(http.ResponseWriter, *http.Request) {}
	orders := func(r chi.Router) {
		r.Use(keep(&found.use))
		r.With(keep(&found.with)).Post("/orders", none)
		r.Group(func(r chi.Router) {
			r.Use(keep(&found.group))
			r.Post("/items/{item:[a-z]+}", none)
			r.Post("/items/{id:[0-9]+}", none)
		})
	}
	router, mounted := chi.NewRouter(), chi.NewRouter()
	mounted.Route("/customers", orders)
	router.Mount("/v1", mounted)
	router.Route("/customers", orders)
	router.Route("/suppliers/{id}", orders)
	router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, path, nil))
	return found
}

// TestChiRoutes: sub-routers have the same patterns and not the same routes.
func TestChiRoutes(t *testing.T) {
	t.Parallel()
	route := func(path string) chiKeys { return chiKeys{}.of(httplock.ByRoute(), path) }
	seen := map[string]string{}
	for _, path := range []string{
		"/customers/orders", "/suppliers/7/orders", "/v1/customers/orders",
		"/customers/items/7", "/customers/items/a", "/suppliers/7/items/7",
	} {
		found := route(path)
		for _, key := range []httplock.Key{found.with, found.group} {
			if key.IsZero() {
				continue
			}
			if other, dup := seen[key.Hash()]; dup {
				t.Errorf("%s and %s are one route", path, other)
			}
			seen[key.Hash()] = path
		}
	}
	if len(seen) != 6 {
		t.Errorf("%d routes, want 6", len(seen))
	}
	for path, pattern := range map[string]string{
		"/customers/orders": "/customers/orders", "/suppliers/8/orders": "/suppliers/{id}/orders",
	} {
		want, err := httplock.RouteKey(http.MethodPost, pattern)
		if err != nil || !route(path).with.Equal(want) {
			t.Errorf("%s is not the route %s, error %v", path, pattern, err)
		}
	}
	// Before its sub-router has matched, only the path is known.
	if one, two := route("/suppliers/7/orders").use, route("/suppliers/7/items/7").use; one.IsZero() || one.Equal(two) {
		t.Error("two paths of a sub-router are one route")
	}
}

// TestChiPathValues: a value is the thing that it names, whichever router has found it.
func TestChiPathValues(t *testing.T) {
	t.Parallel()
	thing := func(path string) chiKeys { return chiKeys{}.of(httplock.ByPathValue("id"), path) }
	want, err := httplock.PathKey("/suppliers/{id}", "id", "7")
	if err != nil {
		t.Fatal(err)
	}
	found := thing("/suppliers/7/orders")
	if !found.use.Equal(want) || !found.with.Equal(want) {
		t.Error("the supplier is not the thing that the path names")
	}
	if item := thing("/customers/items/7").group; item.IsZero() || item.Equal(want) {
		t.Error("the item is the supplier, or none")
	}
	if _, err := httplock.ByPathValue("id")(httptest.NewRequest(http.MethodPost, "/", nil)); !errors.Is(err, httplock.ErrNoRoute) {
		t.Errorf("without a router: error %v", err)
	}
}

// TestChiSpellings: chi hands on values as the client has escaped them, if it has escaped more than it must.
func TestChiSpellings(t *testing.T) {
	t.Parallel()
	want, err := httplock.PathKey("/suppliers/{id}", "id", "a7")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a7", "%617", "a%37", "%61%37"} {
		found := chiKeys{}.of(httplock.ByPathValue("id"), "/suppliers/"+id+"/orders")
		if !found.use.Equal(want) || !found.with.Equal(want) {
			t.Errorf("%s is another supplier", id)
		}
	}
	other, err := httplock.PathKey("/suppliers/{id}", "id", "a%37")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a%2537", "%61%2537"} {
		found := chiKeys{}.of(httplock.ByPathValue("id"), "/suppliers/"+id+"/orders")
		if !found.use.Equal(other) || !found.with.Equal(other) {
			t.Errorf("%s is not the supplier a%%37", id)
		}
	}
}

// TestChiCleanPath: what resolves ".." in front of the routes gives no path more keys than one.
func TestChiCleanPath(t *testing.T) {
	t.Parallel()
	var got error
	router := chi.NewRouter()
	router.Use(chimiddleware.CleanPath)
	router.Post("/orders", func(_ http.ResponseWriter, r *http.Request) { _, got = httplock.ByRoute()(r) })
	for _, target := range []string{"/orders", "//orders", "/./orders"} {
		router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, target, nil))
		if got != nil {
			t.Errorf("%s: %v", target, got)
		}
	}
	router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/a/../orders", nil))
	if !errors.Is(got, httplock.ErrKeyInvalid) {
		t.Errorf("error %v", got)
	}
}
