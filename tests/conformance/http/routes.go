package httpconformance

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

var routeTests = tests{
	"RoutesOfOnePatternAreToldApart":   testPrefixes,
	"AnswersStayWithTheirRoute":        testAnswersOfRoutes,
	"PathValuesOfTwoRoutesAreNotOne":   testPathValues,
	"KeysOfRequestsAreThoseOfPatterns": testDerivedRoutes,
	"HostsAreToldApart":                testHosts,
	"PrefixKeepsServicesApart":         testServices,
}

// twice is a router that has h under two prefixes.
func twice(h http.Handler) http.Handler {
	mux := http.NewServeMux()
	for _, prefix := range []string{"/customers", "/suppliers"} {
		mux.Handle(prefix+"/", http.StripPrefix(prefix, h))
	}
	return mux
}

// testPrefixes: the pattern of the router is the same, the route is not.
func testPrefixes(t *testing.T, s *suite) {
	h := &counter{}
	guard := must(t)(s.Once(s.locks, ByRoute, unhurried(nil)...))
	site := s.serve(t, twice(s.Handler(Route{Path: "/orders/{id}", Guards: []Guard{guard}, Handler: h})))
	for _, step := range []struct {
		path   string
		status int
	}{
		{"/customers/orders/1", 201},
		{"/suppliers/orders/1", 201},
		{"/customers/orders/1", 409},
		{"/suppliers/orders/1", 409},
		{"/customers/orders/2", 409}, // the same route
		{"/customers/orders/%32", 409},
	} {
		site.do(request{user: "prefixes", path: step.path}).want(t, step.status)
	}
	h.ran(t, 2)
}

// testAnswersOfRoutes: no key brings the answer of another operation, whatever the application compares.
func testAnswersOfRoutes(t *testing.T, s *suite) {
	none := func(httplock.Payload) []byte { return nil }
	for name, opts := range map[string][]httplock.Option{"all": nil, "none": {httplock.WithFingerprint(none)}} {
		h := &counter{}
		site := s.serve(t, twice(s.Handler(Route{
			Path: "/orders/{id}", Guards: []Guard{s.idempotent(t, opts...)}, Handler: h,
		})))
		r := request{user: "answers-" + name, key: "k", path: "/customers/orders/1"}
		site.do(r).fresh(t, http.StatusCreated, "1")
		other := r
		other.path = "/suppliers/orders/1"
		site.do(other).refused(t, http.StatusUnprocessableEntity, httplock.CodeKeyReused)
		site.do(r).replayed(t, http.StatusCreated, "1")
		h.ran(t, 1)
	}
}

// testPathValues: cart 7 is not invoice 7, but it is the cart whose items are 7's.
func testPathValues(t *testing.T, s *suite) {
	h, guard := &counter{}, must(t)(s.Once(s.locks, ByID, unhurried(nil)...))
	var routes []Route
	for _, path := range []string{"/carts/{id}", "/carts/{id}/items", "/invoices/{id}"} {
		routes = append(routes, Route{Path: path, Guards: []Guard{guard}, Handler: h})
	}
	site := s.serve(t, s.Handler(routes...))
	for _, step := range []struct {
		path   string
		status int
	}{
		{"/carts/7", 201}, {"/invoices/7", 201}, {"/carts/7/items", 409}, {"/invoices/7", 409}, {"/carts/8/items", 201},
	} {
		site.do(request{user: "values", path: step.path}).want(t, step.status)
	}
}

// testDerivedRoutes: all frameworks make the same key of the same route, which needs no request to be made.
func testDerivedRoutes(t *testing.T, s *suite) {
	user := userKey(t, "derived")
	route, err := httplock.RouteKey(http.MethodPost, "/customers/orders/{id}")
	if err != nil {
		t.Fatal(err)
	}
	value, err := httplock.PathKey("/customers/orders/{id}", "id", "7")
	if err != nil {
		t.Fatal(err)
	}
	for kind, parts := range map[Key][]httplock.Key{ByRoute: {route, user}, ByID: {user, value}} {
		guard := must(t)(s.Once(s.locks, kind, unhurried(nil)...))
		site := s.serve(t, twice(s.Handler(Route{Path: "/orders/{id}", Guards: []Guard{guard}, Handler: &counter{}})))
		site.do(request{user: "derived", path: "/customers/orders/7"}).want(t, http.StatusCreated)
		key, err := httplock.Join(parts...)
		if err != nil {
			t.Fatal(err)
		}
		if r := record(t, s.locks, key); r.State != core.StateCompleted {
			t.Errorf("key %d: the record is %v, want it completed", kind, r.State)
		}
	}
}

// testHosts: sites of one service do not share what their users did, however their host is written.
func testHosts(t *testing.T, s *suite) {
	site := s.mount(t, &counter{}, must(t)(s.Once(s.locks, ByHost, unhurried(nil)...)))
	for _, step := range []struct {
		host   string
		status int
	}{
		{"a.example", 201},
		{"b.example", 201},
		{"A.Example", 409},
		{"a.example.", 409},
		{"a.example:80", 409},
		{"a.example:443", 409},
		{"a.example:8080", 201},
	} {
		r := site.request(t.Context(), request{user: "hosts"})
		r.Host = step.host
		resp, err := site.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		if _ = resp.Body.Close(); resp.StatusCode != step.status {
			t.Errorf("%s: status %d, want %d: %s", step.host, resp.StatusCode, step.status, text)
		}
	}
}

// testServices: services with the same routes on one Redis meet, unless their clients have prefixes of their own.
func testServices(t *testing.T, s *suite) {
	rdb := s.redis.Client()
	for i, step := range []struct {
		prefix string
		status int
	}{{"shop:", 201}, {"bank:", 201}, {"shop:", 409}, {"bank:", 409}} {
		locks := newLocks(t, rdb, core.WithPrefix(fmt.Sprintf("%t:%s", s.http2, step.prefix)))
		site := s.mount(t, &counter{}, must(t)(s.Once(locks, ByRoute, unhurried(nil)...)))
		if got := site.do(request{user: "services"}).status; got != step.status {
			t.Errorf("request %d, of %s: status %d, want %d", i, step.prefix, got, step.status)
		}
	}
}
