package httplock_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// Business code names the key of a request that it does not have: the key of the user whose order was cancelled.
func ExampleJoin() {
	key := httplock.Keys(httplock.ByRoute(), httplock.ByContext(userContext{}))
	var ofRequest httplock.Key
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", func(_ http.ResponseWriter, r *http.Request) { ofRequest, _ = key(r) })
	r := httptest.NewRequest(http.MethodPost, "/orders", nil)
	mux.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithValue(r.Context(), userContext{}, "ada")))

	route, err := httplock.RouteKey(http.MethodPost, "POST /orders")
	if err != nil {
		panic(err)
	}
	user, err := httplock.PrincipalKey("ada")
	if err != nil {
		panic(err)
	}
	derived, err := httplock.Join(route, user)
	if err != nil {
		panic(err)
	}
	fmt.Println(derived.Hash() == ofRequest.Hash())

	// Output:
	// true
}

// The same endpoint takes JSON and forms.
func ExampleFirstOf() {
	order := httplock.FirstOf(httplock.ByJSON("/order/id"), httplock.ByForm("order"))
	for _, body := range []struct{ mediaType, text string }{
		{"application/json", `{"order":{"id":"7"}}`},
		{"application/x-www-form-urlencoded", "order=7"},
		{"application/json", `{"order":{"id":"7","id":"8"}}`},
		{"text/plain", "order 7"},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body.text))
		r.Header.Set("Content-Type", body.mediaType)
		_, err := order(r)
		fmt.Println(err)
	}

	// Output:
	// <nil>
	// <nil>
	// holdfast: invalid key in the request: JSON at "/order/id": an object has a name twice
	// holdfast: invalid key in the request: the Content-Type of the body is not application/json
}
