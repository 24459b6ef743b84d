package gin_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	ginlock "github.com/holdfast-go/holdfast/middleware/gin"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

type userKey struct{}

type userID uint64

// keyAt returns what key makes of the request at hand, as a guard asks it.
func keyAt(c *gin.Context, key httplock.KeyFunc) (httplock.Key, error) {
	var made httplock.Key
	err := errors.New("not reached")
	ginlock.Once(offline(), func(r *http.Request) (httplock.Key, error) {
		made, err = key(r)
		return httplock.Key{}, httplock.ErrKeyRequired // so that the request passes, and Redis is not asked
	}, httplock.OptionalKey())(c)
	return made, err
}

// offline is a client that asks no server.
var offline = sync.OnceValue(func() *core.Client {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	locks, err := core.New(rdb, core.WithLogger(nil))
	if err := errors.Join(err, rdb.Close()); err != nil {
		panic(err)
	}
	return locks
})

// keyOf returns what key makes of a request to an engine with that route.
func keyOf(key httplock.KeyFunc, route, path string, edit func(*gin.Context)) (got httplock.Key, err error) {
	engine := gin.New()
	engine.Use(func(c *gin.Context) {
		if edit != nil {
			edit(c)
		}
		got, err = keyAt(c, key)
	})
	engine.POST(route, func(*gin.Context) {})
	r := httptest.NewRequest(http.MethodPost, path, nil)
	r.Header = http.Header{"X-Cart": {"7"}, "X-Two": {"1", "2"}, "Cookie": {"cart=7"}}
	engine.ServeHTTP(httptest.NewRecorder(), r)
	return got, err
}

func set(value any) func(*gin.Context) { return func(c *gin.Context) { c.Set("user", value) } }

func inRequest(value any) func(*gin.Context) {
	return func(c *gin.Context) {
		c.Request = c.Request.WithContext(context.WithValue(c.Request.Context(), userKey{}, value))
	}
}

func TestKeyFunctions(t *testing.T) {
	t.Parallel()
	user := httplock.ByContext("user")
	byUser := httplock.ByPrincipal(func(r *http.Request) (string, error) { return ginlock.Context(r).GetString("user"), nil })
	for name, test := range map[string]struct {
		key  httplock.KeyFunc
		edit func(*gin.Context)
		want error
	}{
		"header":           {httplock.ByHeader("x-cart"), nil, nil},
		"header absent":    {httplock.ByHeader("X-Absent"), nil, httplock.ErrKeyRequired},
		"header twice":     {httplock.ByHeader("X-Two"), nil, httplock.ErrKeyInvalid},
		"query":            {httplock.ByQuery("cart"), nil, nil},
		"query absent":     {httplock.ByQuery("absent"), nil, httplock.ErrKeyRequired},
		"cookie":           {httplock.ByCookie("cart"), nil, nil},
		"cookie absent":    {httplock.ByCookie("absent"), nil, httplock.ErrKeyRequired},
		"constant":         {httplock.Constant("all"), nil, nil},
		"context":          {httplock.ByContext(userKey{}), inRequest("ada"), nil},
		"context absent":   {httplock.ByContext(userKey{}), nil, httplock.ErrScopeRequired},
		"user":             {user, set("ada"), nil},
		"user id":          {user, set(userID(7)), nil},
		"user absent":      {user, nil, httplock.ErrScopeRequired},
		"user nil":         {user, set(nil), httplock.ErrScopeRequired},
		"user empty":       {user, set(""), httplock.ErrScopeRequired},
		"user zero":        {user, set(userID(0)), httplock.ErrScopeRequired},
		"principal":        {byUser, set("ada"), nil},
		"principal absent": {byUser, set(""), httplock.ErrScopeRequired},
		"host":             {httplock.ByHost(), nil, nil},
		"param":            {httplock.ByPathValue("id"), nil, nil},
		"param of another": {httplock.ByPathValue("order"), nil, httplock.ErrNoRoute},
		"route":            {httplock.ByRoute(), nil, nil},
		"joined":           {httplock.Keys(user, httplock.ByQuery("cart")), set("ada"), nil},
		"joined, one gone": {httplock.Keys(httplock.ByQuery("cart"), user), nil, httplock.ErrScopeRequired},
		"joined, zero key": {httplock.Keys(httplock.ByQuery("cart"), noKey), nil, httplock.ErrKeyRequired},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, err := keyOf(test.key, "/cart/:id", "/cart/7?cart=7", test.edit)
			if !errors.Is(err, test.want) || key.IsZero() != (err != nil) {
				t.Errorf("key %v, error %v, want error %v", key, err, test.want)
			}
		})
	}
}

func noKey(*http.Request) (httplock.Key, error) { return httplock.Key{}, nil }

func TestUserWithoutText(t *testing.T) {
	t.Parallel()
	_, err := keyOf(httplock.ByContext("user"), "/", "/", set(3.5))
	for _, kind := range []error{httplock.ErrKeyRequired, httplock.ErrKeyInvalid, httplock.ErrScopeRequired} {
		if err == nil || errors.Is(err, kind) {
			t.Errorf("error %v, want one that is the server's own", err)
		}
	}
}

func TestKeysOfTheRoute(t *testing.T) {
	t.Parallel()
	hash := func(key httplock.KeyFunc, route, path string) string {
		k, err := keyOf(key, route, path, nil)
		if err != nil {
			return err.Error()
		}
		return k.Hash()
	}
	id, file, route := httplock.ByPathValue("id"), httplock.ByPathValue("file"), httplock.ByRoute()
	if a, b := hash(id, "/cart/:id", "/cart/7"), hash(id, "/cart/:id", "/cart/8"); a == b {
		t.Errorf("two carts, one key %s", a)
	}
	if got := hash(file, "/files/*file", "/files/"); !strings.HasPrefix(got, httplock.ErrKeyRequired.Error()) {
		t.Errorf("a parameter that matched nothing: %s", got)
	}
	if a, b := hash(file, "/files/*file", "/files/a"), hash(file, "/files/*file", "/files//a"); a == b {
		t.Errorf("two files, one key %s", a)
	}
	if a, b := hash(route, "/cart/:id", "/cart/7"), hash(route, "/cart/:id", "/cart/8"); a != b {
		t.Errorf("one route, two keys %s and %s", a, b)
	}
	if a, b := hash(route, "/cart/:id", "/cart/7"), hash(route, "/orders", "/orders"); a == b {
		t.Errorf("two routes, one key %s", a)
	}
	if got := hash(route, "/orders", "/unknown"); !strings.HasPrefix(got, httplock.ErrNoRoute.Error()) {
		t.Errorf("a path without route: %s", got)
	}
}

// Business code without request names what a request has left behind.
func TestKeysOfValues(t *testing.T) {
	t.Parallel()
	values := func(keys ...func() (httplock.Key, error)) httplock.Key {
		t.Helper()
		var made []httplock.Key
		for _, key := range keys {
			k, err := key()
			if err != nil {
				t.Fatal(err)
			}
			made = append(made, k)
		}
		joined, err := httplock.Join(made...)
		if err != nil {
			t.Fatal(err)
		}
		return joined
	}
	user := func() (httplock.Key, error) { return httplock.PrincipalKey(userID(7)) }
	route := func() (httplock.Key, error) { return httplock.RouteKey(http.MethodPost, "/cart/{id}") }
	id := func() (httplock.Key, error) { return httplock.PathKey("/cart/{id}", "id", "9") }
	rest := func() (httplock.Key, error) { return httplock.PathKey("/files/{file...}", "file", "a/b") }
	for name, test := range map[string]struct {
		of          httplock.KeyFunc
		route, path string
		want        httplock.Key
	}{
		"route":     {httplock.ByRoute(), "/cart/:id", "/cart/9", values(route)},
		"path":      {httplock.ByPathValue("id"), "/cart/:id", "/cart/9", values(id)},
		"catch-all": {httplock.ByPathValue("file"), "/files/*file", "/files/a/b", values(rest)},
		"user":      {httplock.ByContext("user"), "/", "/", values(user)},
		"joined": {
			httplock.Keys(httplock.ByRoute(), httplock.ByContext("user"), httplock.ByPathValue("id")),
			"/cart/:id", "/cart/9", values(route, user, id),
		},
	} {
		got, err := keyOf(test.of, test.route, test.path, set(userID(7)))
		if err != nil || !got.Equal(test.want) {
			t.Errorf("%s: error %v, keys equal %v", name, err, got.Equal(test.want))
		}
	}
	if _, err := httplock.RouteKey(http.MethodPost, ""); !errors.Is(err, httplock.ErrNoRoute) {
		t.Errorf("no route: error %v", err)
	}
	if _, err := httplock.Join(); !errors.Is(err, httplock.ErrKeyRequired) {
		t.Errorf("no keys: error %v", err)
	}
	if _, err := httplock.PrincipalKey(userID(0)); !errors.Is(err, httplock.ErrScopeRequired) {
		t.Errorf("no user: error %v", err)
	}
}

func TestFirstOf(t *testing.T) {
	t.Parallel()
	user, cart, absent := httplock.ByContext("user"), httplock.ByHeader("X-Cart"), httplock.ByHeader("X-Absent")
	own := errors.New("own")
	fails := func(*http.Request) (httplock.Key, error) { return httplock.Key{}, own }
	zero := func(*http.Request) (httplock.Key, error) { return httplock.Key{}, nil }
	for name, test := range map[string]struct {
		fns  []httplock.KeyFunc
		like httplock.KeyFunc // the same key
		want error
	}{
		"first":        {[]httplock.KeyFunc{cart, fails}, cart, nil},
		"no user":      {[]httplock.KeyFunc{user, cart}, cart, nil},
		"no key":       {[]httplock.KeyFunc{absent, zero, cart}, cart, nil},
		"none":         {[]httplock.KeyFunc{user, absent}, nil, httplock.ErrScopeRequired},
		"zero":         {[]httplock.KeyFunc{zero, user}, nil, httplock.ErrKeyRequired},
		"invalid":      {[]httplock.KeyFunc{httplock.ByHeader("X-Two"), cart}, nil, httplock.ErrKeyInvalid},
		"server's own": {[]httplock.KeyFunc{fails, cart}, nil, own},
	} {
		first := httplock.FirstOf(test.fns...)
		clear(test.fns) // which are the caller's
		got, err := keyOf(first, "/", "/", nil)
		if !errors.Is(err, test.want) {
			t.Errorf("%s: error %v, want %v", name, err, test.want)
		}
		if test.like == nil {
			continue
		}
		if want, _ := keyOf(test.like, "/", "/", nil); !got.Equal(want) {
			t.Errorf("%s: another key", name)
		}
	}
}

// A guard of the whole engine sees requests that no route has matched, too. Clients cause them, so they are no mistake of the
// service. They must not pass either: NoRoute may have a handler that works.
func TestUnknownRouteIsRefused(t *testing.T) {
	t.Parallel()
	watch := newWatch()
	locks := newLocks(t, testkit.Start(t).Client(), watch.hooks())
	engine := gin.New()
	engine.Use(ginlock.Exclusive(locks.Mutex, httplock.ByRoute(), core.WithWait(patience)))
	a := post(t.Context(), serve(t, engine), "ada", "7")
	a.want(t, http.StatusBadRequest)
	if p := a.problem(t); p.Code != "key-invalid" || p.Retryable {
		t.Errorf("problem %+v, want key-invalid", p)
	}
	if c := receive(t, watch.refused, "the hook"); !errors.Is(c, httplock.ErrKeyInvalid) {
		t.Errorf("the hook was told %v, want ErrKeyInvalid", c)
	}
}

func TestKeyMistakesPanicWhenBuilt(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func(){
		"no keys":     func() { httplock.Keys() },
		"no first":    func() { httplock.FirstOf() },
		"nil first":   func() { httplock.FirstOf(httplock.ByHeader("X-Cart"), nil) },
		"nil key":     func() { httplock.Keys(httplock.ByRoute(), nil) },
		"nil context": func() { httplock.ByContext(nil) },
		"nil user":    func() { httplock.ByPrincipal(nil) },
		"no constant": func() { httplock.Constant("") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			build()
		}()
	}
}

// TestSharedKeys: a key of a value equals httplock's, and a host has the key of requests to it.
func TestSharedKeys(t *testing.T) {
	t.Parallel()
	got, err1 := httplock.NewKey("cart", "7")
	want, err2 := httplock.NewKey("cart", "7")
	if err1 != nil || err2 != nil || !got.Equal(want) {
		t.Errorf("NewKey: errors %v, %v, keys equal %v", err1, err2, got.Equal(want))
	}
	host, err1 := httplock.HostKey("Shop.Example.COM.:443")
	request, err2 := keyOf(httplock.ByHost(), "/", "/", func(c *gin.Context) { c.Request.Host = "shop.example.com" })
	if err1 != nil || err2 != nil || !host.Equal(request) {
		t.Errorf("HostKey: errors %v, %v, keys equal %v", err1, err2, host.Equal(request))
	}
}

// TestKeyErrorIsTheDetail: the text of a KeyError begins the detail that the client gets, with the code of its kind.
func TestKeyErrorIsTheDetail(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	key := func(*http.Request) (httplock.Key, error) {
		return httplock.Key{}, httplock.KeyError(httplock.ErrKeyInvalid, "a cart has %d digits", 7)
	}
	a := refused(t, ginlock.Exclusive(locks.Mutex, key))
	a.want(t, http.StatusBadRequest)
	if p := a.problem(t); p.Code != httplock.CodeKeyInvalid || !strings.HasPrefix(p.Detail, "A cart has 7 digits.") {
		t.Errorf("problem %+v", p)
	}
}

// A gin service and a net/http service exclude each other on what means the same.
func TestSameLockAsNetHTTP(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		here         httplock.KeyFunc
		there        httplock.KeyFunc
		route, muxed string
		path         string
	}{
		"user in either": {httplock.ByContext("user"), httplock.ByContext(userKey{}), "/", "/", "/"},
		"context":        {httplock.ByContext(userKey{}), httplock.ByContext(userKey{}), "/", "/", "/"},
		"header":         {httplock.ByHeader("X-Cart"), httplock.ByHeader("X-Cart"), "/", "/", "/"},
		"cookie":         {httplock.ByCookie("cart"), httplock.ByCookie("cart"), "/", "/", "/"},
		"query":          {httplock.ByQuery("cart"), httplock.ByQuery("cart"), "/", "/", "/?cart=7"},
		"constant":       {httplock.Constant("all"), httplock.Constant("all"), "/", "/", "/"},
		"param":          {httplock.ByPathValue("id"), httplock.ByPathValue("id"), "/cart/:id", "/cart/{id}", "/cart/7"},
		"param, escaped": {httplock.ByPathValue("id"), httplock.ByPathValue("id"), "/cart/:id", "/cart/{id}", "/cart/a%20b"},
		"rest of a path": {httplock.ByPathValue("f"), httplock.ByPathValue("f"), "/f/*f", "/f/{f...}", "/f/a/b"},
		"host":           {httplock.ByHost(), httplock.ByHost(), "/", "/", "/"},
		"route":          {httplock.ByRoute(), httplock.ByRoute(), "/orders", "POST /orders", "/orders"},
		"route of ids":   {httplock.ByRoute(), httplock.ByRoute(), "/cart/:id/:item", "/cart/{cart}/{item}", "/cart/7/8"},
		"route of files": {httplock.ByRoute(), httplock.ByRoute(), "/f/*f", "/f/{f...}", "/f/a/b"},
		"route of a mux": {httplock.ByRoute(), httplock.ByRoute(), "/f/*f", "/f/", "/f/a/b/"},
		"route, slash":   {httplock.ByRoute(), httplock.ByRoute(), "/cart/:id/", "/cart/{id}/{$}", "/cart/7/"},
		"route, escaped": {httplock.ByRoute(), httplock.ByRoute(), "/caf\u00e9/:id", "/caf\u00e9/{id}", "/caf%C3%A9/7"},
		"route of root":  {httplock.ByRoute(), httplock.ByRoute(), "/", "/{$}", "/"},
		"longer param":   {httplock.ByPathValue("id"), httplock.ByPathValue("id"), "/cart/:id/pay", "/cart/{id}/pay", "/cart/7/pay"},
		"client":         {ginlock.ByClientIP(), httplock.ByClientIP(httplock.RemoteAddr), "/", "/", "/"},
		"joined": {
			httplock.Keys(httplock.ByContext("user"), httplock.ByPathValue("id")),
			httplock.Keys(httplock.ByContext(userKey{}), httplock.ByPathValue("id")),
			"/cart/:id", "/cart/{id}", "/cart/7",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			here, err := keyOf(test.here, test.route, test.path, func(c *gin.Context) {
				set("ada")(c)
				inRequest("ada")(c)
			})
			if err != nil {
				t.Fatal(err)
			}
			there, err := keyThere(test.there, test.muxed, test.path)
			if err != nil {
				t.Fatal(err)
			}
			if !here.Equal(there) || here.IsZero() {
				t.Error("the keys differ")
			}
		})
	}
}

// keyThere returns what key makes of the same request in a net/http service.
func keyThere(key httplock.KeyFunc, pattern, path string) (got httplock.Key, err error) {
	mux := http.NewServeMux()
	mux.HandleFunc(pattern, func(_ http.ResponseWriter, r *http.Request) { got, err = key(r) })
	r := httptest.NewRequest(http.MethodPost, path, nil)
	r.Header = http.Header{"X-Cart": {"7"}, "Cookie": {"cart=7"}}
	mux.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithValue(r.Context(), userKey{}, "ada")))
	return got, err
}

// mounted returns what key makes of a POST of path to an engine with that route, under a prefix that it does not see.
func mounted(t *testing.T, key httplock.KeyFunc, prefix, route, path string) httplock.Key {
	t.Helper()
	var got httplock.Key
	err := errors.New("not reached")
	engine := gin.New()
	engine.POST(route, func(c *gin.Context) { got, err = keyAt(c, key) })
	r := httptest.NewRequest(http.MethodPost, path, nil)
	http.StripPrefix(prefix, engine).ServeHTTP(httptest.NewRecorder(), r)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return got
}

// TestEnginesUnderPrefixesAreDistinguished: the engine does not see what was taken away in front of it.
func TestEnginesUnderPrefixesAreDistinguished(t *testing.T) {
	t.Parallel()
	for _, key := range []httplock.KeyFunc{httplock.ByRoute(), httplock.ByPathValue("id")} {
		customers := mounted(t, key, "/customers", "/orders/:id", "/customers/orders/7")
		if suppliers := mounted(t, key, "/suppliers", "/orders/:id", "/suppliers/orders/7"); customers.Equal(suppliers) {
			t.Error("two prefixes, one key")
		}
		if whole := mounted(t, key, "", "/customers/orders/:id", "/customers/orders/7"); !customers.Equal(whole) {
			t.Error("one path, two keys")
		}
	}
}

// TestRoutesOfGroups: a group is a part of the route, and a catch-all says nothing of where a request goes.
func TestRoutesOfGroups(t *testing.T) {
	t.Parallel()
	keys := map[string]httplock.Key{}
	keep := func(c *gin.Context) {
		key, err := keyAt(c, httplock.ByRoute())
		if err != nil {
			t.Error(err)
		}
		keys[c.Request.URL.Path] = key
	}
	engine := gin.New()
	for _, prefix := range []string{"/customers", "/suppliers/:id"} {
		engine.Group(prefix, keep).POST("/orders", func(*gin.Context) {})
	}
	engine.POST("/shop/*rest", keep)
	for _, path := range []string{
		"/customers/orders", "/suppliers/7/orders", "/suppliers/8/orders", "/shop/orders", "/shop/returns",
	} {
		engine.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, path, nil))
	}
	if !keys["/suppliers/7/orders"].Equal(keys["/suppliers/8/orders"]) {
		t.Error("one route of two suppliers has two keys")
	}
	delete(keys, "/suppliers/8/orders")
	seen := map[string]string{}
	for path, key := range keys {
		if other, dup := seen[key.Hash()]; dup || key.IsZero() {
			t.Errorf("%s has the key of %q, or none", path, other)
		}
		seen[key.Hash()] = path
	}
}

// TestEscapedSlashMakesNoOtherRoute: gin takes it for one that is not escaped, unless it is told to match paths as they
// were sent. Behind a prefix that it does not see, both are possible, so the path is refused.
func TestEscapedSlashMakesNoOtherRoute(t *testing.T) {
	t.Parallel()
	plain := mounted(t, httplock.ByRoute(), "/v1", "/:cart/:item", "/v1/7/8")
	if escaped := mounted(t, httplock.ByRoute(), "", "/v1/:cart/:item", "/v1/7%2F8"); !escaped.Equal(plain) {
		t.Error("another spelling of the path makes another key")
	}
	mounted(t, func(r *http.Request) (httplock.Key, error) {
		key, err := httplock.ByRoute()(r)
		if !errors.Is(err, httplock.ErrKeyInvalid) {
			t.Errorf("behind a prefix: key %v, error %v", key, err)
		}
		return key, nil
	}, "/v1", "/:cart/:item", "/v1/7%2F8")
	var raw httplock.Key
	err := errors.New("not reached")
	engine := gin.New()
	engine.UseRawPath = true
	engine.POST("/v1/:cart/:item", func(c *gin.Context) { raw, err = keyAt(c, httplock.ByRoute()) })
	r := httptest.NewRequest(http.MethodPost, "/v1/7%2F8/9", nil)
	if engine.ServeHTTP(httptest.NewRecorder(), r); err != nil || !raw.Equal(plain) {
		t.Errorf("a path that is matched as it was sent: error %v, same key %v", err, raw.Equal(plain))
	}
}

// TestOtherFrameworkRefusesWhatRan: a service of each kind on one Redis, which have the same routes.
func TestOtherFrameworkRefusesWhatRan(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	runs := map[string]int{}
	ran := func(path string) { runs[path]++ }
	engine, mux := gin.New(), http.NewServeMux()
	for _, route := range []struct{ ours, theirs string }{
		{"/cart/:id/checkout", "POST /cart/{id}/checkout"},
		{"/cart/:id/refund", "/cart/{id}/refund"},
		{"/invoice/:id", "POST /invoice/{invoice}"},
		{"/files/*path", "/files/"},
	} {
		engine.POST(route.ours, ginlock.Once(locks, httplock.Keys(httplock.ByRoute(), httplock.ByHeader("X-User")),
			httplock.WithAskTimeout(patience)), func(c *gin.Context) { ran(c.Request.URL.Path) })
		mux.Handle(route.theirs, httplock.Once(locks, httplock.Keys(httplock.ByRoute(), httplock.ByHeader("X-User")),
			httplock.WithAskTimeout(patience))(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { ran(r.URL.Path) })))
	}
	for _, step := range []struct {
		service http.Handler
		path    string
		status  int
	}{
		{mux, "/cart/7/checkout", 200},
		{engine, "/cart/7/checkout", 409},
		{engine, "/cart/8/checkout", 409}, // the same route
		{engine, "/cart/7/refund", 200},
		{mux, "/cart/7/refund", 409},
		{mux, "/invoice/7", 200},
		{engine, "/invoice/7", 409},
		{engine, "/files/a/b", 200},
		{mux, "/files/a/b", 409},
		{mux, "/files/a", 200},
		{engine, "/files/a", 409},
	} {
		r := httptest.NewRequest(http.MethodPost, step.path, nil)
		r.Header.Set("X-User", "ada")
		w := httptest.NewRecorder()
		if step.service.ServeHTTP(w, r); w.Code != step.status {
			t.Errorf("%s: status %d, want %d", step.path, w.Code, step.status)
		}
	}
	if len(runs) != 5 {
		t.Errorf("runs %v, want one of each of five", runs)
	}
}

// TestSpellingsOfAPath: gin can be told to resolve "..", and to leave values escaped.
func TestSpellingsOfAPath(t *testing.T) {
	t.Parallel()
	var keys []httplock.Key
	err := errors.New("not reached")
	keep := func(c *gin.Context) {
		var key httplock.Key
		key, err = keyAt(c, httplock.ByPathValue("id"))
		keys = append(keys, key)
	}
	lax, raw := gin.New(), gin.New()
	lax.RemoveExtraSlash = true
	raw.UseRawPath, raw.UnescapePathValues = true, false
	lax.POST("/cart/:id", keep)
	for _, route := range []string{"/cart/:id", "/two/:id/:other", "/files/*id"} {
		raw.POST(route, keep)
	}
	serve := func(engine *gin.Engine, target string) {
		engine.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, target, nil))
	}
	serve(lax, "/cart/a7")
	for _, same := range [][]string{
		{"/cart/a7", "/cart/%617", "/cart/%61%37"},
		{"/cart/7%2Fx", "/cart/7%2fx", "/cart/%37%2fx"},
		{"/two/7/b%2Fc", "/two/%37/b%2Fc", "/two/7/%62%2fc"},
		{"/files/a%2Fb/c", "/files/%61%2fb/c", "/files/a%2fb/%63"},
	} {
		first := len(keys)
		for _, target := range same {
			serve(raw, target)
			if err != nil || !keys[len(keys)-1].Equal(keys[first]) {
				t.Errorf("%s has another key than %s, error %v", target, same[0], err)
			}
		}
	}
	for _, target := range []string{"/a/../cart/a7", "/cart/x/../a7", "/cart/%2e%2e/cart/a7"} {
		if serve(lax, target); !errors.Is(err, httplock.ErrKeyInvalid) {
			t.Errorf("%s: error %v", target, err)
		}
	}
}

// ipKey returns the key of a request that comes from remote and claims to be forwarded for another address.
func ipKey(t *testing.T, trusted []string, remote, forwarded string) (key httplock.Key, err error) {
	t.Helper()
	engine := gin.New()
	if err := engine.SetTrustedProxies(trusted); err != nil {
		t.Fatal(err)
	}
	engine.POST("/", func(c *gin.Context) { key, err = keyAt(c, ginlock.ByClientIP()) })
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.RemoteAddr = remote
	r.Header.Set("X-Forwarded-For", forwarded)
	engine.ServeHTTP(httptest.NewRecorder(), r)
	return key, err
}

func TestByClientIP(t *testing.T) {
	t.Parallel()
	const proxy = "192.0.2.1:1"
	trusted := []string{"192.0.2.1"}
	for name, test := range map[string]struct {
		trusted [2][]string
		remote  [2]string
		header  [2]string
		same    bool
	}{
		"two ports":        {remote: [2]string{"203.0.113.7:1", "203.0.113.7:2"}, same: true},
		"two addresses":    {remote: [2]string{"203.0.113.7:1", "203.0.113.8:1"}},
		"mapped":           {remote: [2]string{"203.0.113.7:1", "[::ffff:203.0.113.7]:1"}, same: true},
		"one /64":          {remote: [2]string{"[2001:db8::1]:1", "[2001:db8::ffff:1:2:3]:1"}, same: true},
		"two /64":          {remote: [2]string{"[2001:db8::1]:1", "[2001:db8:0:1::1]:1"}},
		"header not heard": {remote: [2]string{proxy, proxy}, header: [2]string{"203.0.113.7", "203.0.113.8"}, same: true},
		"two behind proxy": {
			trusted: [2][]string{trusted, trusted},
			remote:  [2]string{proxy, proxy}, header: [2]string{"203.0.113.7", "203.0.113.8"},
		},
		"one through proxy": {
			trusted: [2][]string{nil, trusted},
			remote:  [2]string{"203.0.113.7:1", proxy}, header: [2]string{"", "203.0.113.7"}, same: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var keys [2]httplock.Key
			for i := range keys {
				var err error
				if keys[i], err = ipKey(t, test.trusted[i], test.remote[i], test.header[i]); err != nil {
					t.Fatal(err)
				}
			}
			if keys[0].Equal(keys[1]) != test.same {
				t.Errorf("one key %v, want %v", !test.same, test.same)
			}
		})
	}
	if key, err := ipKey(t, nil, "@", ""); err == nil || !key.IsZero() {
		t.Errorf("without address: key %v, error %v", key, err)
	}
}

// TestRequestOfKeyFunctions: a key function gets gin's route, path values and context values, and the gin.Context. What it gets is
// its own: the chain and what is around the engine see the request as it was.
func TestRequestOfKeyFunctions(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	var kept *http.Request
	key := func(r *http.Request) (httplock.Key, error) {
		kept = r
		c := ginlock.Context(r)
		if r.Pattern != "POST /shops/{shop}/files/{file...}" || r.PathValue("shop") != "7" || r.PathValue("file") != "a/b" ||
			r.PathValue("tenant") != "acme" || r.Context().Value("user") != "ada" || r.Context().Value(userKey{}) != "bob" ||
			c == nil || c.Param("shop") != "7" || c.Request != r {
			t.Errorf("pattern %q, values %q, %q, %q, users %v, %v, gin.Context %v", r.Pattern, r.PathValue("shop"), r.PathValue("file"),
				r.PathValue("tenant"), r.Context().Value("user"), r.Context().Value(userKey{}), c != nil)
		}
		if text, err := io.ReadAll(r.Body); err != nil || string(text) != "order" {
			t.Errorf("body %q, error %v", text, err)
		}
		r.Body = io.NopCloser(strings.NewReader("left"))
		return httplock.NewKey("cart", "7")
	}
	engine := gin.New()
	engine.ContextWithFallback = true
	var body string
	engine.POST("/shops/:shop/files/*file", set("ada"), inRequest("bob"), ginlock.Exclusive(locks.Mutex, key, unhurried),
		func(c *gin.Context) {
			text, _ := io.ReadAll(c.Request.Body)
			body = string(text)
			if c.Request.Pattern != "/{tenant}/{shop}/" || c.Request.PathValue("shop") != "shops" || c.Value(userKey{}) != "bob" {
				t.Errorf("the chain has pattern %q, shop %q", c.Request.Pattern, c.Request.PathValue("shop"))
			}
			if ginlock.Context(c.Request) != nil || ginlock.Context(kept) != nil {
				t.Error("the gin.Context can be had outside the key function")
			}
		})
	mux := http.NewServeMux()
	mux.HandleFunc("/{tenant}/{shop}/", func(w http.ResponseWriter, r *http.Request) {
		http.StripPrefix("/acme", engine).ServeHTTP(w, r)
		if r.Pattern != "/{tenant}/{shop}/" || r.PathValue("shop") != "shops" {
			t.Errorf("around the engine: pattern %q, shop %q", r.Pattern, r.PathValue("shop"))
		}
	})
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/acme/shops/7/files/a/b", strings.NewReader("order")))
	if w.Code != http.StatusOK || body != "left" {
		t.Errorf("status %d, the chain read %q", w.Code, body)
	}
}
