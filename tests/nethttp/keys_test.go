package nethttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path"
	"strings"
	"testing"
	"testing/iotest"

	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/httpkit"
)

type userKey struct{}

type (
	userName string
	userID   uint64
	account  struct{ id int }
)

func (a account) MarshalText() ([]byte, error) { return fmt.Append(nil, "account ", a.id), nil }

// String is the same for all, as for a type whose values must not be logged.
func (account) String() string { return "account ***" }

func (userName) String() string { return "***" }

func (userID) String() string { return "***" }

func request(edit func(*http.Request)) *http.Request {
	r := httptest.NewRequest("POST", "/?cart=7&two=1&two=2&none=", nil)
	r.Header = http.Header{"X-Cart": {"7"}, "X-Two": {"1", "2"}, "X-None": {""}, "X-Long": {strings.Repeat("x", 256)}}
	r.Header.Set("Cookie", "cart=7; two=1; two=2; none=")
	if edit != nil {
		edit(r)
	}
	return r
}

func as(user any) func(*http.Request) {
	return func(r *http.Request) { *r = *r.WithContext(context.WithValue(r.Context(), userKey{}, user)) }
}

func rawQuery(q string) func(*http.Request) { return func(r *http.Request) { r.URL.RawQuery = q } }

func TestKeyFunctions(t *testing.T) {
	t.Parallel()
	user := httplock.ByContext(userKey{})
	for name, test := range map[string]struct {
		key  httplock.KeyFunc
		edit func(*http.Request)
		want error
	}{
		"header":           {httplock.ByHeader("x-cart"), nil, nil},
		"header absent":    {httplock.ByHeader("X-Absent"), nil, httplock.ErrKeyRequired},
		"header empty":     {httplock.ByHeader("X-None"), nil, httplock.ErrKeyInvalid},
		"header twice":     {httplock.ByHeader("X-Two"), nil, httplock.ErrKeyInvalid},
		"header too long":  {httplock.ByHeader("X-Long"), nil, httplock.ErrKeyInvalid},
		"query":            {httplock.ByQuery("cart"), nil, nil},
		"query absent":     {httplock.ByQuery("absent"), nil, httplock.ErrKeyRequired},
		"query empty":      {httplock.ByQuery("none"), nil, httplock.ErrKeyRequired},
		"query twice":      {httplock.ByQuery("two"), nil, httplock.ErrKeyInvalid},
		"query malformed":  {httplock.ByQuery("cart"), rawQuery("cart=%zz"), httplock.ErrKeyInvalid},
		"cookie":           {httplock.ByCookie("cart"), nil, nil},
		"cookie absent":    {httplock.ByCookie("absent"), nil, httplock.ErrKeyRequired},
		"cookie empty":     {httplock.ByCookie("none"), nil, httplock.ErrKeyRequired},
		"cookie twice":     {httplock.ByCookie("two"), nil, httplock.ErrKeyInvalid},
		"user":             {user, as("ada"), nil},
		"user name":        {user, as(userName("ada")), nil},
		"user id":          {user, as(userID(7)), nil},
		"user int":         {user, as(-7), nil},
		"user marshaler":   {user, as(account{7}), nil},
		"user absent":      {user, nil, httplock.ErrScopeRequired},
		"user empty":       {user, as(""), httplock.ErrScopeRequired},
		"user zero":        {user, as(userID(0)), httplock.ErrScopeRequired},
		"user nil pointer": {user, as((*account)(nil)), httplock.ErrScopeRequired},
		"constant":         {httplock.Constant("all"), nil, nil},
		"route outside":    {httplock.ByRoute(), nil, httplock.ErrNoRoute},
		"path outside":     {httplock.ByPathValue("id"), nil, httplock.ErrNoRoute},
		"joined":           {httplock.Keys(user, httplock.ByQuery("cart")), as("ada"), nil},
		"joined, one gone": {httplock.Keys(httplock.ByQuery("cart"), user), nil, httplock.ErrScopeRequired},
		"joined, zero key": {httplock.Keys(httplock.ByQuery("cart"), noKey), nil, httplock.ErrKeyRequired},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, err := test.key(request(test.edit))
			if !errors.Is(err, test.want) || key.IsZero() != (err != nil) {
				t.Errorf("key %v, error %v, want error %v", key, err, test.want)
			}
		})
	}
}

func noKey(*http.Request) (httplock.Key, error) { return httplock.Key{}, nil }

func TestContextValueWithoutText(t *testing.T) {
	t.Parallel()
	_, err := httplock.ByContext(userKey{})(request(as(3.5)))
	for _, kind := range []error{httplock.ErrKeyRequired, httplock.ErrKeyInvalid, httplock.ErrScopeRequired} {
		if err == nil || errors.Is(err, kind) {
			t.Errorf("error %v, want one that is the server's own", err)
		}
	}
}

func TestKeysOfTheRoute(t *testing.T) {
	t.Parallel()
	hashes := func(key httplock.KeyFunc) func(method, path string) string {
		var got string
		h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			k, err := key(r)
			if got = k.Hash(); err != nil {
				got = err.Error()
			}
		})
		mux := http.NewServeMux()
		mux.Handle("/cart/{id}/checkout", h)
		mux.Handle("/files/{path...}", h)
		mux.Handle("/orders", h)
		return func(method, path string) string {
			got = ""
			mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, path, nil))
			return got
		}
	}
	id, route := hashes(httplock.ByPathValue("id")), hashes(httplock.ByRoute())
	if a, b := id("POST", "/cart/7/checkout"), id("POST", "/cart/8/checkout"); a == b {
		t.Errorf("two carts, one key %s", a)
	}
	if got := id("POST", "/orders"); got != `holdfast: the route "/orders" has no wildcard "id": it has no wildcards` {
		t.Errorf("a route without the wildcard: %s", got)
	}
	path := hashes(httplock.ByPathValue("path"))
	if a, b := path("POST", "/files/a/b"), path("POST", "/files/a/c"); a == b {
		t.Errorf("two files, one key %s", a)
	}
	if got := path("POST", "/files/"); !strings.HasPrefix(got, httplock.ErrKeyRequired.Error()) {
		t.Errorf("a wildcard that matched nothing: %s", got)
	}
	if a, b := route("POST", "/cart/7/checkout"), route("POST", "/cart/8/checkout"); a != b {
		t.Errorf("one route, two keys %s and %s", a, b)
	}
	if a, b := route("POST", "/cart/7/checkout"), route("PUT", "/cart/7/checkout"); a == b {
		t.Errorf("two methods, one key %s", a)
	}
	if a, b := route("POST", "/cart/7/checkout"), route("POST", "/orders"); a == b {
		t.Errorf("two routes, one key %s", a)
	}
}

func TestSourcesAreKeptApart(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for name, key := range map[string]httplock.KeyFunc{
		"header":   httplock.ByHeader("X-Cart"),
		"query":    httplock.ByQuery("cart"),
		"cookie":   httplock.ByCookie("cart"),
		"context":  httplock.ByContext(userKey{}),
		"constant": httplock.Constant("7"),
		"unscoped": httplock.Unscoped(),
		"form":     httplock.ByForm("cart"),
		"ip":       httplock.ByClientIP(httplock.RemoteAddr),
		"twice":    httplock.Keys(httplock.ByQuery("cart"), httplock.ByQuery("cart")),
	} {
		r := request(as("7"))
		if name == "form" { // a value in both places is refused
			r.URL.RawQuery = ""
			typed(form, "cart=7")(r)
		}
		k, err := key(r)
		if err != nil {
			t.Fatal(err)
		}
		if other, dup := seen[k.Hash()]; dup {
			t.Errorf("%s and %s make the same key", name, other)
		}
		seen[k.Hash()] = name
	}
}

func TestKeyMistakesPanicWhenBuilt(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func(){
		"no keys":          func() { httplock.Keys() },
		"nil key":          func() { httplock.Keys(httplock.ByRoute(), nil) },
		"first of none":    func() { httplock.FirstOf() },
		"first of nil":     func() { httplock.FirstOf(nil, httplock.ByRoute()) },
		"nil context":      func() { httplock.ByContext(nil) },
		"no constant":      func() { httplock.Constant("") },
		"no JSON pointer":  func() { httplock.ByJSON("id") },
		"bad JSON pointer": func() { httplock.ByJSON("/a~2") },
		"nil IP resolver":  func() { httplock.ByClientIP(nil) },
		"nil principal":    func() { httplock.ByPrincipal(nil) },
	} {
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.HasPrefix(text, "holdfast: ") {
					t.Errorf("%s: panics with %s", name, text)
				}
			}()
			build()
		}()
	}
}

func TestFirstOf(t *testing.T) {
	t.Parallel()
	own := errors.New("the database is down")
	fails := func(err error) httplock.KeyFunc {
		return func(*http.Request) (httplock.Key, error) { return httplock.Key{}, err }
	}
	lacking, noScope := fails(httplock.ErrKeyRequired), fails(httplock.ErrScopeRequired)
	one, two := httplock.Constant("one"), httplock.Constant("two")
	for name, test := range map[string]struct {
		fns  []httplock.KeyFunc
		key  httplock.KeyFunc
		want error
	}{
		"the first":              {[]httplock.KeyFunc{one, two}, one, nil},
		"the first, no other":    {[]httplock.KeyFunc{one, fails(own)}, one, nil},
		"no key":                 {[]httplock.KeyFunc{lacking, two, one}, two, nil},
		"no scope":               {[]httplock.KeyFunc{noScope, two}, two, nil},
		"zero key":               {[]httplock.KeyFunc{noKey, two}, two, nil},
		"invalid":                {[]httplock.KeyFunc{fails(httplock.ErrKeyInvalid), two}, nil, httplock.ErrKeyInvalid},
		"no route":               {[]httplock.KeyFunc{fails(httplock.ErrNoRoute), two}, nil, httplock.ErrNoRoute},
		"own error":              {[]httplock.KeyFunc{fails(own), two}, nil, own},
		"no key, own error":      {[]httplock.KeyFunc{noKey, fails(own)}, nil, own},
		"none, first no scope":   {[]httplock.KeyFunc{noScope, noKey}, nil, httplock.ErrScopeRequired},
		"none, first no key":     {[]httplock.KeyFunc{lacking, noScope}, nil, httplock.ErrKeyRequired},
		"none, first a zero key": {[]httplock.KeyFunc{noKey, noScope}, nil, httplock.ErrKeyRequired},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := httplock.FirstOf(test.fns...)(request(nil))
			var want httplock.Key
			if test.key != nil {
				want, _ = test.key(nil)
			}
			if !got.Equal(want) || !errors.Is(err, test.want) {
				t.Errorf("key %v, error %v, want %v, %v", got, err, want, test.want)
			}
			if errors.Is(test.want, httplock.ErrScopeRequired) && errors.Is(err, httplock.ErrKeyRequired) {
				t.Errorf("error %v is both", err)
			}
		})
	}
}

// cleaned is a router behind a handler that resolves "..", as the CleanPath of chi does.
func cleaned(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path, r.URL.RawPath = path.Clean(r.URL.Path), ""
		h.ServeHTTP(w, r)
	})
}

// TestPathThatClimbsIsRefused: each spelling of a path with ".." would be a key of its own, and a run of its own.
func TestPathThatClimbsIsRefused(t *testing.T) {
	t.Parallel()
	router := func(h http.Handler) http.Handler { return cleaned(at(h, "/orders", "/cart/{id}/buy", "/shop/")) }
	for _, target := range []string{
		"/a/../orders", "/../orders", "/a/%2e%2e/orders", "/a/.%2E/orders", "/a%2f../orders", "/orders/x/..", "/shop/a/../b",
	} {
		if key, err := routed(httplock.ByRoute(), router, target); !errors.Is(err, httplock.ErrKeyInvalid) {
			t.Errorf("%s: key %v, error %v", target, key, err)
		}
	}
	for _, target := range []string{"/cart/x/../7/buy", "/a/../cart/7/buy"} {
		if key, err := routed(httplock.ByPathValue("id"), router, target); !errors.Is(err, httplock.ErrKeyInvalid) {
			t.Errorf("%s: key %v, error %v", target, key, err)
		}
	}
	for _, target := range []string{"/cart/..7/buy", "/cart/7../buy", "/cart/.../buy", "/cart/7%252e%252e/buy"} {
		if _, err := routed(httplock.ByPathValue("id"), router, target); err != nil {
			t.Errorf("%s: %v", target, err)
		}
	}
}

// TestEscapesOfPathValues: the spelling of a value makes no other resource, and a percent sign is one that the client has
// escaped.
func TestEscapesOfPathValues(t *testing.T) {
	t.Parallel()
	router := func(h http.Handler) http.Handler { return at(h, "/cart/{id}/{item}", "/files/{rest...}") }
	for _, test := range []struct{ name, target, pattern, value string }{
		{"id", "/cart/a7/1", "/cart/{id}", "a7"},
		{"id", "/cart/%61%37/1", "/cart/{id}", "a7"},
		{"id", "/cart/a%2537/1", "/cart/{id}", "a%37"},
		{"id", "/cart/a%2537/a%37", "/cart/{id}", "a%37"}, // whatever the other segments are
		{"id", "/cart/a%2Fb/1", "/cart/{id}", "a/b"},
		{"id", "/cart/100%25/1", "/cart/{id}", "100%"},
		{"rest", "/files/a/%62", "/files/{rest...}", "a/b"},
	} {
		want, err := httplock.PathKey(test.pattern, test.name, test.value)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := routed(httplock.ByPathValue(test.name), router, test.target); err != nil || !got.Equal(want) {
			t.Errorf("%s is not %q, error %v", test.target, test.value, err)
		}
	}
}

func TestByClientIP(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"192.0.2.7":                  "192.0.2.7/32",
		"::ffff:192.0.2.7":           "192.0.2.7/32",
		"::ffff:192.0.2.7%eth0":      "192.0.2.7/32",
		"::1":                        "::/64",
		"2001:db8:1:2:3:4:5:6":       "2001:db8:1:2::/64",
		"2001:db8:1:2::":             "2001:db8:1:2::/64",
		"2001:db8:1:2:ffff::1%zone7": "2001:db8:1:2::/64",
		"2001:db8:1:3::":             "2001:db8:1:3::/64",
		"fe80::1%eth0":               "fe80::/64",
	} {
		resolve := func(*http.Request) (netip.Addr, error) { return netip.ParseAddr(address) }
		got, err := httplock.ByClientIP(resolve)(request(nil))
		if err != nil {
			t.Errorf("%s: %v", address, err)
		}
		wantKey, _ := httplock.NewKey("ip", want)
		if !got.Equal(wantKey) {
			t.Errorf("%s: not the key of %s", address, want)
		}
	}
}

func TestClientIPUnknown(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fails error
		want  error // nil: one of the server's own
	}{
		"no address":      {nil, nil},
		"own error":       {errors.New("broken"), nil},
		"refused":         {httplock.ErrKeyInvalid, httplock.ErrKeyInvalid},
		"nobody is known": {httplock.ErrScopeRequired, httplock.ErrScopeRequired},
	} {
		resolve := func(*http.Request) (netip.Addr, error) { return netip.Addr{}, test.fails }
		_, err := httplock.ByClientIP(resolve)(request(nil))
		if err == nil || test.fails != nil && !errors.Is(err, test.fails) {
			t.Errorf("%s: error %v, want %v", name, err, test.fails)
		}
		for _, kind := range []error{httplock.ErrKeyRequired, httplock.ErrKeyInvalid, httplock.ErrScopeRequired} {
			if errors.Is(err, kind) != (kind == test.want) {
				t.Errorf("%s: error %v, want kind %v", name, err, test.want)
			}
		}
	}
}

func TestRemoteAddr(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 1)
	srv := httpkit.Serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		addr, err := httplock.RemoteAddr(r)
		if err != nil {
			t.Error(err)
		}
		seen <- addr.String()
	}))
	httpkit.Post(t.Context(), srv, "ada", "7").Want(t, http.StatusOK)
	if got := httpkit.Receive(t, seen, "the address"); got != "127.0.0.1" && got != "::1" {
		t.Errorf("address %s, want that of this machine", got)
	}
	r := httptest.NewRequest("POST", "/", nil)
	for _, r.RemoteAddr = range []string{"", "@", "192.0.2.7", "host:80"} {
		if addr, err := httplock.RemoteAddr(r); err == nil {
			t.Errorf("%q: address %v, want an error", r.RemoteAddr, addr)
		}
	}
}

const (
	form      = "application/x-www-form-urlencoded"
	jsonType  = "application/json"
	multiForm = "multipart/form-data; boundary=b"
)

func typed(contentType, body string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Set("Content-Type", contentType)
		r.Body = io.NopCloser(strings.NewReader(body))
	}
}

func encoded(coding, contentType, body string) func(*http.Request) {
	return func(r *http.Request) {
		typed(contentType, body)(r)
		r.Header.Set("Content-Encoding", coding)
	}
}

func TestKeysOfTheBody(t *testing.T) {
	t.Parallel()
	byForm, byJSON := httplock.ByForm("id"), httplock.ByJSON("/id")
	nested := httplock.ByJSON("/order/id")
	beside := func(method, query string) func(*http.Request) {
		return func(r *http.Request) {
			typed(jsonType, `{"order":{"id":7}}`)(r)
			r.Method, r.URL.RawQuery = method, query
		}
	}
	seven, broken := `{"id":7}`, iotest.ErrReader(errors.New("broken"))
	for name, test := range map[string]struct {
		key  httplock.KeyFunc
		edit func(*http.Request)
		want string
		err  error
	}{
		"form":               {byForm, typed(form, "id=7"), "form:id 7", nil},
		"form with charset":  {byForm, typed("Application/X-WWW-Form-URLencoded; charset=utf-8", "id=7"), "form:id 7", nil},
		"form, identity":     {byForm, encoded("identity", form, "id=7"), "form:id 7", nil},
		"form, zipped":       {byForm, encoded("gzip", form, "id=7"), "", httplock.ErrKeyInvalid},
		"form, no field":     {byForm, typed(form, "a=7"), "", httplock.ErrKeyRequired},
		"form, field twice":  {byForm, typed(form, "id=7&id=7"), "", httplock.ErrKeyInvalid},
		"form, long value":   {byForm, typed(form, "id="+strings.Repeat("x", 256)), "", httplock.ErrKeyInvalid},
		"form, not a query":  {httplock.ByForm("cart"), typed(form, "id=7"), "", httplock.ErrKeyInvalid},
		"form of multiparts": {byForm, typed(multiForm, "--b--"), "", httplock.ErrKeyRequired},
		"form, but JSON":     {byForm, typed(jsonType, seven), "", httplock.ErrKeyInvalid},
		"form, no type":      {byForm, typed("", "id=7"), "", httplock.ErrKeyInvalid},
		"form, no body": {byForm, func(r *http.Request) {
			typed(form, "")(r)
			r.Body = nil
		}, "", httplock.ErrKeyRequired},
		"JSON":              {byJSON, typed(jsonType, seven), "json:/id number:7", nil},
		"JSON with charset": {byJSON, typed("application/JSON; charset=utf-8", `{"id":"7"}`), "json:/id string:7", nil},
		"JSON of a kind":    {byJSON, typed("application/merge-patch+json", seven), "json:/id number:7", nil},
		"JSON, zipped":      {byJSON, encoded("br", jsonType, seven), "", httplock.ErrKeyInvalid},
		"JSON, nothing":     {byJSON, typed(jsonType, `{}`), "", httplock.ErrKeyRequired},
		"JSON, object":      {byJSON, typed(jsonType, `{"id":{}}`), "", httplock.ErrKeyInvalid},
		"JSON, long value":  {byJSON, typed(jsonType, `{"id":"`+strings.Repeat("x", 249)+`"}`), "", httplock.ErrKeyInvalid},
		"JSON, malformed":   {byJSON, typed(jsonType, seven+"x"), "", httplock.ErrKeyInvalid},
		"JSON, but text":    {byJSON, typed("text/plain", seven), "", httplock.ErrKeyInvalid},
		"JSON, nested":      {nested, beside("POST", "id=8"), "json:/order/id number:7", nil},
		"JSON, GET":         {nested, beside("GET", "id=8"), "", httplock.ErrKeyInvalid},
		"JSON, HEAD":        {nested, beside("HEAD", "order[id]=8"), "", httplock.ErrKeyInvalid},
		"JSON, QUERY":       {nested, beside("QUERY", "order=8"), "", httplock.ErrKeyInvalid},
		"JSON, Go name": {
			httplock.ByJSON("/voucher_code"), func(r *http.Request) {
				typed("application/x+json", `{"voucher_code":7}`)(r)
				r.URL.RawQuery = "VoucherCode=8"
			}, "", httplock.ErrKeyInvalid,
		},
		"JSON, Go name in a form": {httplock.ByJSON("/voucher_code"), typed(form, "VoucherCode=8"), "", httplock.ErrKeyInvalid},
		"form, Go name in JSON":   {httplock.ByForm("voucher_code"), typed(jsonType, `{"VoucherCode":8}`), "", httplock.ErrKeyInvalid},
		"JSON, GET alone":         {nested, beside("GET", "a=8"), "json:/order/id number:7", nil},
		"JSON, odd type":          {byJSON, typed("application/json; charset", seven), "", httplock.ErrKeyInvalid},
		"JSON, broken body": {byJSON, func(r *http.Request) {
			typed(jsonType, "")(r)
			r.Body = io.NopCloser(io.MultiReader(strings.NewReader(seven), broken))
		}, "", httplock.ErrKeyInvalid},
		"first of both": {httplock.FirstOf(byJSON, byForm), typed(form, "id=7"), "form:id 7", nil},
		"first, in a form that is not read": {
			httplock.FirstOf(httplock.ByQuery("id"), httplock.ByHeader("X-Cart")), typed(form, "id="+strings.Repeat("x", 64<<10)),
			"header:X-Cart 7", nil,
		},
		"first of both, JSON": {httplock.FirstOf(byForm, byJSON), typed(jsonType, seven), "json:/id number:7", nil},
		"first of both, none": {httplock.FirstOf(byForm, byJSON), typed(jsonType, `{}`), "", httplock.ErrKeyRequired},
		"first, nowhere but in another place": {
			httplock.FirstOf(httplock.ByHeader("X-Absent"), byForm), rawQuery("id=7"), "", httplock.ErrKeyInvalid,
		},
		"both": {
			httplock.Keys(httplock.ByJSON("/a"), byJSON), typed(jsonType, `{"a":"x","id":7}`),
			"json:/a string:x json:/id number:7", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, err := test.key(request(test.edit))
			var want []httplock.Key
			for parts := strings.Fields(test.want); len(parts) > 0; parts = parts[2:] {
				want = append(want, must(t)(httplock.NewKey(parts[0], parts[1])))
			}
			if joined, _ := httplock.Join(want...); !key.Equal(joined) || !errors.Is(err, test.err) {
				t.Errorf("key %v, error %v, want %v of %q, %v", key, err, joined, test.want, test.err)
			}
		})
	}
}

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

// at is a mux whose patterns all have the same handler.
func at(h http.Handler, patterns ...string) http.Handler {
	mux := http.NewServeMux()
	for _, pattern := range patterns {
		mux.Handle(pattern, h)
	}
	return mux
}

// stripped is a mux that has h under each of the prefixes.
func stripped(h http.Handler, prefixes ...string) http.Handler {
	mux := http.NewServeMux()
	for _, prefix := range prefixes {
		mux.Handle(prefix+"/", http.StripPrefix(prefix, h))
	}
	return mux
}

func rewritten(h http.Handler, to string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path, r.URL.RawPath = to, ""
		h.ServeHTTP(w, r)
	})
}

// routed returns the key that a guard makes of a POST of that target behind a router.
func routed(key httplock.KeyFunc, router func(http.Handler) http.Handler, target string) (got httplock.Key, err error) {
	err = errors.New("not reached")
	h := router(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got, err = key(r) }))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, target, nil))
	return got, err
}

// routers have two targets each, whose resources and routes are the same or not.
var routers = map[string]struct {
	router    func(http.Handler) http.Handler
	one, two  string
	sameRoute bool
}{
	"two prefixes": {
		func(h http.Handler) http.Handler { return stripped(at(h, "POST /orders"), "/customers", "/suppliers") },
		"/customers/orders", "/suppliers/orders", false,
	},
	"two prefixes of prefixes": {
		func(h http.Handler) http.Handler {
			return stripped(stripped(at(h, "/orders"), "/v1", "/v2"), "/customers", "/suppliers")
		},
		"/customers/v1/orders", "/suppliers/v1/orders", false,
	},
	"one pattern at two depths": {
		func(h http.Handler) http.Handler { return stripped(at(h, "/api/orders", "/orders"), "/api") },
		"/api/api/orders", "/api/orders", false,
	},
	"path value behind a prefix": {
		func(h http.Handler) http.Handler { return stripped(at(h, "POST /orders/{id}"), "/customers") },
		"/customers/orders/7", "/customers/orders/8", true,
	},
	"spelling": {
		func(h http.Handler) http.Handler { return stripped(at(h, "/orders"), "/v1") },
		"/v1/orders", "/v1/%6Frders", true,
	},
	"escaped slash in a value": {
		func(h http.Handler) http.Handler { return stripped(at(h, "/orders/{id}/{item}"), "/v1") },
		"/v1/orders/a/b", "/v1/orders/a%2Fb/c%2Fd", true,
	},
	"mux in a mux": {
		func(h http.Handler) http.Handler { return at(at(h, "/shop/orders", "/shop/returns"), "/shop/") },
		"/shop/orders", "/shop/returns", false,
	},
	"guard around a mux": {
		func(h http.Handler) http.Handler { return at(h, "/shop/") },
		"/shop/orders", "/shop/returns", false,
	},
	"guard around a mux without prefix": {
		func(h http.Handler) http.Handler { return stripped(at(h, "/"), "/shop", "/store") },
		"/shop/orders", "/store/orders", false,
	},
	"guard behind the prefix": {
		func(h http.Handler) http.Handler { return at(http.StripPrefix("/shop", h), "/shop/") },
		"/shop/orders", "/shop/returns", false,
	},
	"guard behind the prefix of an exact pattern": {
		func(h http.Handler) http.Handler { return at(http.StripPrefix("/shop", h), "/shop/{id}") },
		"/shop/7", "/shop/8", true,
	},
	"rest of a path": {
		func(h http.Handler) http.Handler { return at(h, "/shop/{rest...}") },
		"/shop/orders", "/shop/returns", false,
	},
	"index of a directory": {
		func(h http.Handler) http.Handler { return at(h, "/shop/{$}", "/shop") },
		"/shop/", "/shop", false,
	},
	"two hosts in patterns": {
		func(h http.Handler) http.Handler { return at(h, "a.example/orders", "b.example/orders") },
		"http://a.example/orders", "http://b.example/orders", false,
	},
	"two hosts without patterns": {
		func(h http.Handler) http.Handler { return at(h, "/orders") },
		"http://a.example/orders", "/orders", true,
	},
	"query": {
		func(h http.Handler) http.Handler { return stripped(at(h, "/orders"), "/shop") },
		"/shop/orders?a=/b", "/shop/orders", true,
	},
	"another path put in place": {
		func(h http.Handler) http.Handler { return rewritten(at(h, "/orders/{id}"), "/orders/7") },
		"/legacy.php", "/old.php", true,
	},
}

func TestRoutesAreDistinguished(t *testing.T) {
	t.Parallel()
	for name, test := range routers {
		one, err := routed(httplock.ByRoute(), test.router, test.one)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		two, err := routed(httplock.ByRoute(), test.router, test.two)
		if err != nil || one.Equal(two) != test.sameRoute {
			t.Errorf("%s: same key %v, want %v; error %v", name, one.Equal(two), test.sameRoute, err)
		}
	}
}

// TestMethodOfPatternIsNoRoute: a route keeps its key when its pattern gets a method.
func TestMethodOfPatternIsNoRoute(t *testing.T) {
	t.Parallel()
	keyed := func(pattern string) httplock.Key {
		t.Helper()
		key, err := routed(httplock.ByRoute(), func(h http.Handler) http.Handler { return at(h, pattern) }, "/orders/7")
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	want := keyed("/orders/{id}")
	for _, pattern := range []string{"POST /orders/{id}", "POST \t/orders/{order}", "/%6Frders/{id}"} {
		if !keyed(pattern).Equal(want) {
			t.Errorf("%s makes another key", pattern)
		}
	}
}

// TestRouteThatDoesNotFitIsRefused: a pattern that does not match the path says nothing about the request.
func TestRouteThatDoesNotFitIsRefused(t *testing.T) {
	t.Parallel()
	for pattern, path := range map[string]string{
		"/orders": "/returns", "/orders/{id}": "/orders", "orders": "/orders", "": "/orders",
		"/{id}": "/",
	} {
		r := httptest.NewRequest(http.MethodPost, path, nil)
		r.Pattern = pattern
		if key, err := httplock.ByRoute()(r); !errors.Is(err, httplock.ErrNoRoute) || !key.IsZero() {
			t.Errorf("pattern %q, path %q: key %v, error %v", pattern, path, key, err)
		}
	}
}

// TestRequestWithoutTarget: a request that was made in the process has no target of its own.
func TestRequestWithoutTarget(t *testing.T) {
	t.Parallel()
	var keys []httplock.Key
	h := at(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		key, err := httplock.ByRoute()(r)
		if err != nil {
			t.Error(err)
		}
		keys = append(keys, key)
	}), "/orders/{id}")
	for _, target := range []string{"", "/orders/7", "http://a.example/orders/7?a=b", "%"} {
		r := httptest.NewRequest(http.MethodPost, "/orders/7", nil)
		r.RequestURI = target
		h.ServeHTTP(httptest.NewRecorder(), r)
		if last := keys[len(keys)-1]; !last.Equal(keys[0]) {
			t.Errorf("target %q makes another key", target)
		}
	}
}

// TestLongPathIsARoute: a path may be longer than a value that a client chooses.
func TestLongPathIsARoute(t *testing.T) {
	t.Parallel()
	router := func(h http.Handler) http.Handler { return at(h, "/") }
	long := "/" + strings.Repeat("a", 1000)
	one, err := routed(httplock.ByRoute(), router, long)
	if err != nil {
		t.Fatal(err)
	}
	if two, err := routed(httplock.ByRoute(), router, long+"b"); err != nil || one.Equal(two) {
		t.Errorf("two long paths: same key, or error %v", err)
	}
}

// TestPathValuesAreResources: the same value is another thing in another place, and the same thing for all that can be
// done with it.
func TestPathValuesAreResources(t *testing.T) {
	t.Parallel()
	shop := func(h http.Handler) http.Handler {
		mux := http.NewServeMux()
		for _, prefix := range []string{"/customers", "/suppliers"} {
			mux.Handle(prefix+"/", http.StripPrefix(prefix, at(h, "/orders/{id}", "/orders/{id}/pay")))
		}
		for _, pattern := range []string{
			"/cart/{id}", "/cart/{id}/checkout", "/cart/{cart}/items/{id}", "/invoice/{id}", "/{id}",
		} {
			mux.Handle(pattern, h)
		}
		return mux
	}
	keyed := func(target string) httplock.Key {
		t.Helper()
		key, err := routed(httplock.ByPathValue("id"), shop, target)
		if err != nil {
			t.Fatalf("%s: %v", target, err)
		}
		return key
	}
	seen := map[string]string{}
	for _, path := range []string{
		"/cart/7", "/cart/8", "/invoice/7", "/7", "/customers/orders/7", "/suppliers/orders/7", "/cart/1/items/7",
	} {
		hash := keyed(path).Hash()
		if other, dup := seen[hash]; dup {
			t.Errorf("%s and %s are one resource", path, other)
		}
		seen[hash] = path
	}
	for one, two := range map[string]string{
		"/cart/7": "/cart/7/checkout", "/customers/orders/7": "/customers/orders/7/pay", "/cart/1/items/7": "/cart/2/items/7",
	} {
		if !keyed(one).Equal(keyed(two)) {
			t.Errorf("%s and %s are two resources", one, two)
		}
	}
}

// TestEmptyHeader: a header field that is there and empty is a mistake of the client, and no request without a key.
func TestEmptyHeader(t *testing.T) {
	t.Parallel()
	guard := httplock.Once(newLocks(t, testkit.Start(t).Client()), httplock.FirstOf(httplock.ByHeader("X-Order"), httplock.ByQuery("order")),
		httplock.OptionalKey())
	inner := guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }))
	for _, test := range []struct {
		lines  []string
		status int
	}{
		{nil, http.StatusCreated},
		{[]string{"7"}, http.StatusCreated},
		{[]string{""}, http.StatusBadRequest},
		{[]string{"", "7"}, http.StatusBadRequest},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/?order=", nil)
		r.Header["X-Order"] = test.lines
		w := httptest.NewRecorder()
		if inner.ServeHTTP(w, r); w.Code != test.status {
			t.Errorf("%q: status %d, want %d: %s", test.lines, w.Code, test.status, w.Body)
		}
	}
}
