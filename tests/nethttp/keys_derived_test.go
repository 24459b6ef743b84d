package nethttp_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// must returns the key of a constructor whose arguments are right.
func must(t *testing.T) func(key httplock.Key, err error) httplock.Key {
	return func(key httplock.Key, err error) httplock.Key {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
}

func TestDerivedKeysAreThoseOfRequests(t *testing.T) {
	t.Parallel()
	must := must(t)
	path, route := httplock.ByPathValue("id"), httplock.ByRoute()
	user := httplock.ByContext(userKey{})
	byName := httplock.ByPrincipal(func(r *http.Request) (string, error) {
		return string(r.Context().Value(userKey{}).(userName)), nil
	})
	seven := must(httplock.PathKey("/cart/{id}", "id", "7"))
	for name, test := range map[string]struct {
		pattern string
		key     httplock.KeyFunc
		as      any
		want    httplock.Key
	}{
		"route":             {"/cart/{id}", route, "ada", must(httplock.RouteKey("POST", "/cart/{cart}"))},
		"route with method": {"POST /cart/{id}", route, "ada", must(httplock.RouteKey("POST", "POST /cart/{id}"))},
		"route for others":  {"POST /cart/{id}", route, "ada", must(httplock.RouteKey("POST", "/cart/{id}"))},
		"route of a host":   {"example.com/cart/{id}", route, "ada", must(httplock.RouteKey("POST", "Example.com/cart/{id}"))},
		"route of a path":   {"/cart/", route, "ada", must(httplock.RouteKey("POST", "/cart/7"))},
		"host":              {"/cart/{id}", httplock.ByHost(), "ada", must(httplock.HostKey("Example.COM.:443"))},
		"path":              {"/cart/{id}", path, "ada", seven},
		"user":              {"/cart/{id}", user, "ada", must(httplock.PrincipalKey("ada"))},
		"user of a type":    {"/cart/{id}", user, userName("ada"), must(httplock.PrincipalKey("ada"))},
		"number":            {"/cart/{id}", user, userID(7), must(httplock.PrincipalKey(userID(7)))},
		"marshaler":         {"/cart/{id}", user, account{7}, must(httplock.PrincipalKey(account{7}))},
		"function":          {"/cart/{id}", byName, userName("ada"), must(httplock.PrincipalKey("ada"))},
		"joined": {
			"POST /cart/{id}", httplock.Keys(route, user, path), "ada",
			must(httplock.Join(
				must(httplock.RouteKey("POST", "POST /cart/{id}")), must(httplock.PrincipalKey("ada")), seven)),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got httplock.Key
			var err error
			mux := http.NewServeMux()
			mux.HandleFunc(test.pattern, func(_ http.ResponseWriter, r *http.Request) { got, err = test.key(r) })
			r := httptest.NewRequest("POST", "/cart/7", nil)
			as(test.as)(r)
			mux.ServeHTTP(httptest.NewRecorder(), r)
			if err != nil || !got.Equal(test.want) || got.Hash() != test.want.Hash() {
				t.Errorf("key %v, error %v, want the derived %v", got, err, test.want)
			}
		})
	}
}

// The names of records must not change between versions: what was once would be done again.
func TestDerivedKeysAreStable(t *testing.T) {
	t.Parallel()
	must := must(t)
	part := func(name, value string) httplock.Key { return must(httplock.NewKey(name, value)) }
	for name, keys := range map[string][2]httplock.Key{
		"route": {
			must(httplock.RouteKey("POST", "/orders")),
			must(httplock.Join(part("method", "POST"), part("route", "/orders"))),
		},
		"principal": {must(httplock.PrincipalKey("ada")), part("context", "ada")},
		"wildcard": {
			must(httplock.RouteKey("POST", "/cart/{id}/pay")),
			must(httplock.Join(part("method", "POST"), part("route", "/cart/{}/pay"))),
		},
		"path":     {must(httplock.PathKey("/cart/{id}", "id", "7")), must(httplock.Join(part("resource", "/cart/{}"), part("path", "7")))},
		"unscoped": {must(httplock.Unscoped()(nil)), part("unscoped", "all")},
	} {
		if !keys[0].Equal(keys[1]) {
			t.Errorf("%s: other parts than before", name)
		}
	}
}

func TestDerivedKeysRefuse(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		make func() (httplock.Key, error)
		want error
	}{
		"no pattern":   {func() (httplock.Key, error) { return httplock.RouteKey("POST", "") }, httplock.ErrNoRoute},
		"no method":    {func() (httplock.Key, error) { return httplock.RouteKey("", "/") }, httplock.ErrKeyRequired},
		"no principal": {func() (httplock.Key, error) { return httplock.PrincipalKey(nil) }, httplock.ErrScopeRequired},
		"empty user":   {func() (httplock.Key, error) { return httplock.PrincipalKey("") }, httplock.ErrScopeRequired},
		"a subtree":    {func() (httplock.Key, error) { return httplock.RouteKey("POST", "/f/{rest...}") }, httplock.ErrNoRoute},
		"no path":      {func() (httplock.Key, error) { return httplock.RouteKey("POST", "POST example.com") }, httplock.ErrNoRoute},
		"no value":     {func() (httplock.Key, error) { return httplock.PathKey("/{id}", "id", "") }, httplock.ErrKeyRequired},
		"no wildcard":  {func() (httplock.Key, error) { return httplock.PathKey("/{id}", "cart", "7") }, httplock.ErrNoRoute},
		"no host":      {func() (httplock.Key, error) { return httplock.HostKey("") }, httplock.ErrKeyRequired},
		"nothing":      {func() (httplock.Key, error) { return httplock.Join() }, httplock.ErrKeyRequired},
	} {
		if key, err := test.make(); !errors.Is(err, test.want) || !key.IsZero() {
			t.Errorf("%s: key %v, error %v, want %v", name, key, err, test.want)
		}
	}
}
