package nethttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

type userKey struct{}

type (
	userName string
	userID   uint64
	account  struct{ id int }
)

func (a account) MarshalText() ([]byte, error) { return fmt.Append(nil, "account ", a.id), nil }

// String is the same for all, as that of a type whose values are not to be logged.
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
		"header empty":     {httplock.ByHeader("X-None"), nil, httplock.ErrKeyRequired},
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
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Body = io.NopCloser(strings.NewReader("cart=7"))
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
