package nethttp_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

type partsUser struct{}

// TestPartsOfKeys: what an operator knows of a request leads to its record, by each key function.
func TestPartsOfKeys(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	user := httplock.ByContext(partsUser{})
	for name, test := range map[string]struct {
		key   httplock.KeyFunc
		parts []string
	}{
		"route and resource": {httplock.Keys(httplock.ByRoute(), user, httplock.ByPathValue("id")), []string{"POST /carts/{id}/orders", "ada", "7"}},
		"constant":           {httplock.Keys(httplock.Constant("orders"), user), []string{"ada"}},
		"principal":          {httplock.ByPrincipal(func(*http.Request) (string, error) { return "ada", nil }), []string{"ada"}},
		"first of":           {httplock.FirstOf(user, httplock.ByCookie("cart")), []string{"ada"}},
		"header":             {httplock.ByHeader("x-cart"), []string{"c1"}},
		"cookie":             {httplock.ByCookie("session"), []string{"s1"}},
		"query":              {httplock.ByQuery("order"), []string{"9"}},
		"host":               {httplock.ByHost(), []string{"Shop.example:443"}},
		"form":               {httplock.ByForm("item"), []string{"pen"}},
		"address":            {httplock.ByClientIP(httplock.RemoteAddr), []string{"192.0.2.1"}},
		"own, of this package": {func(r *http.Request) (httplock.Key, error) {
			return httplock.ByHeader("X-Cart")(r)
		}, []string{"c1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			guard, err := httplock.NewOnce(locks, httplock.Keys(httplock.Constant(name), test.key))
			if err != nil {
				t.Fatal(err)
			}
			mux := http.NewServeMux()
			mux.Handle("POST /carts/{id}/orders", guard.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
			r := httptest.NewRequestWithContext(context.WithValue(t.Context(), partsUser{}, "ada"), http.MethodPost,
				"http://shop.example/carts/7/orders?order=9", strings.NewReader("item=pen"))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("X-Cart", "c1")
			r.AddCookie(&http.Cookie{Name: "session", Value: "s1"})
			mux.ServeHTTP(httptest.NewRecorder(), r)
			if seen, err := guard.Peek(t.Context(), test.parts...); err != nil || seen.State != core.StateCompleted {
				t.Errorf("record %+v, error %v, want it completed", seen, err)
			}
			for _, parts := range [][]string{test.parts[1:], append([]string{"more"}, test.parts...)} {
				if seen, err := guard.Peek(t.Context(), parts...); err == nil {
					t.Errorf("%q: record %+v", parts, seen)
				}
			}
		})
	}
}

// TestPartsThatMakeNoKey: what does not lead to a key is an error, not the record of another request.
func TestPartsThatMakeNoKey(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	own := func(r *http.Request) (httplock.Key, error) {
		return httplock.NewKey("tenant", r.Header.Get("X-Tenant"))
	}
	for name, test := range map[string]struct {
		key   httplock.KeyFunc
		parts []string
		want  error
	}{
		"a resource without its route": {httplock.ByPathValue("id"), []string{"7"}, httplock.ErrKeyShape},
		"a route without method":       {httplock.ByRoute(), []string{"/orders"}, httplock.ErrKeyInvalid},
		"a route without the wildcard": {httplock.Keys(httplock.ByRoute(), httplock.ByPathValue("id")), []string{"POST /orders", "7"}, httplock.ErrNoRoute},
		"no address":                   {httplock.ByClientIP(httplock.RemoteAddr), []string{"ada"}, httplock.ErrKeyInvalid},
		"an own function":              {own, []string{"ada"}, httplock.ErrKeyRequired},
		"an own function that panics":  {func(r *http.Request) (httplock.Key, error) { return httplock.NewKey("host", r.TLS.ServerName) }, []string{"ada"}, nil},
	} {
		guard, err := httplock.NewOnce(locks, test.key)
		if err != nil {
			t.Fatal(err)
		}
		if seen, err := guard.Peek(t.Context(), test.parts...); err == nil || test.want != nil && !errors.Is(err, test.want) {
			t.Errorf("%s: record %+v, error %v, want %v", name, seen, err, test.want)
		}
	}
}
