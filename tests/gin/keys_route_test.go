package gin_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	ginlock "github.com/holdfast-go/holdfast/middleware/gin"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// mounted returns what key makes of a POST of path to an engine with that route, under a prefix that it does not see.
func mounted(t *testing.T, key ginlock.KeyFunc, prefix, route, path string) ginlock.Key {
	t.Helper()
	var got ginlock.Key
	err := errors.New("not reached")
	engine := gin.New()
	engine.POST(route, func(c *gin.Context) { got, err = key(c) })
	r := httptest.NewRequest(http.MethodPost, path, nil)
	http.StripPrefix(prefix, engine).ServeHTTP(httptest.NewRecorder(), r)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return got
}

// TestEnginesUnderPrefixesAreToldApart: the engine does not see what was taken away in front of it.
func TestEnginesUnderPrefixesAreToldApart(t *testing.T) {
	t.Parallel()
	for _, key := range []ginlock.KeyFunc{ginlock.ByRoute(), ginlock.ByParam("id")} {
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
	keys := map[string]ginlock.Key{}
	keep := func(c *gin.Context) {
		key, err := ginlock.ByRoute()(c)
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
	plain := mounted(t, ginlock.ByRoute(), "/v1", "/:cart/:item", "/v1/7/8")
	if escaped := mounted(t, ginlock.ByRoute(), "", "/v1/:cart/:item", "/v1/7%2F8"); !escaped.Equal(plain) {
		t.Error("another spelling of the path makes another key")
	}
	mounted(t, func(c *gin.Context) (ginlock.Key, error) {
		key, err := ginlock.ByRoute()(c)
		if !errors.Is(err, ginlock.ErrKeyInvalid) {
			t.Errorf("behind a prefix: key %v, error %v", key, err)
		}
		return key, nil
	}, "/v1", "/:cart/:item", "/v1/7%2F8")
	var raw ginlock.Key
	err := errors.New("not reached")
	engine := gin.New()
	engine.UseRawPath = true
	engine.POST("/v1/:cart/:item", func(c *gin.Context) { raw, err = ginlock.ByRoute()(c) })
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
		engine.POST(route.ours, ginlock.Once(locks, ginlock.Keys(ginlock.ByRoute(), ginlock.ByHeader("X-User")),
			ginlock.WithAskTimeout(patience)), func(c *gin.Context) { ran(c.Request.URL.Path) })
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
	var keys []ginlock.Key
	err := errors.New("not reached")
	keep := func(c *gin.Context) {
		var key ginlock.Key
		key, err = ginlock.ByParam("id")(c)
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
		if serve(lax, target); !errors.Is(err, ginlock.ErrKeyInvalid) {
			t.Errorf("%s: error %v", target, err)
		}
	}
}
