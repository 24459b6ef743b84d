package gin_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	ginlock "github.com/holdfast-go/holdfast/middleware/gin"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

type userKey struct{}

type userID uint64

// keyOf returns what key makes of a request to an engine with that route.
func keyOf(key ginlock.KeyFunc, route, path string, edit func(*gin.Context)) (got ginlock.Key, err error) {
	engine := gin.New()
	engine.Use(func(c *gin.Context) {
		if edit != nil {
			edit(c)
		}
		got, err = key(c)
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
	user := ginlock.ByKey("user")
	byUser := ginlock.ByPrincipal(func(c *gin.Context) (string, error) { return c.GetString("user"), nil })
	for name, test := range map[string]struct {
		key  ginlock.KeyFunc
		edit func(*gin.Context)
		want error
	}{
		"header":           {ginlock.ByHeader("x-cart"), nil, nil},
		"header absent":    {ginlock.ByHeader("X-Absent"), nil, ginlock.ErrKeyRequired},
		"header twice":     {ginlock.ByHeader("X-Two"), nil, ginlock.ErrKeyInvalid},
		"query":            {ginlock.ByQuery("cart"), nil, nil},
		"query absent":     {ginlock.ByQuery("absent"), nil, ginlock.ErrKeyRequired},
		"cookie":           {ginlock.ByCookie("cart"), nil, nil},
		"cookie absent":    {ginlock.ByCookie("absent"), nil, ginlock.ErrKeyRequired},
		"constant":         {ginlock.Constant("all"), nil, nil},
		"context":          {ginlock.ByContext(userKey{}), inRequest("ada"), nil},
		"context absent":   {ginlock.ByContext(userKey{}), nil, ginlock.ErrScopeRequired},
		"user":             {user, set("ada"), nil},
		"user id":          {user, set(userID(7)), nil},
		"user absent":      {user, nil, ginlock.ErrScopeRequired},
		"user nil":         {user, set(nil), ginlock.ErrScopeRequired},
		"user empty":       {user, set(""), ginlock.ErrScopeRequired},
		"user zero":        {user, set(userID(0)), ginlock.ErrScopeRequired},
		"principal":        {byUser, set("ada"), nil},
		"principal absent": {byUser, set(""), ginlock.ErrScopeRequired},
		"host":             {ginlock.ByHost(), nil, nil},
		"param":            {ginlock.ByParam("id"), nil, nil},
		"param of another": {ginlock.ByParam("order"), nil, ginlock.ErrNoRoute},
		"route":            {ginlock.ByRoute(), nil, nil},
		"path of net/http": {ginlock.From(httplock.ByPathValue("id")), nil, ginlock.ErrNoRoute},
		"joined":           {ginlock.Keys(user, ginlock.ByQuery("cart")), set("ada"), nil},
		"joined, one gone": {ginlock.Keys(ginlock.ByQuery("cart"), user), nil, ginlock.ErrScopeRequired},
		"joined, zero key": {ginlock.Keys(ginlock.ByQuery("cart"), noKey), nil, ginlock.ErrKeyRequired},
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

func noKey(*gin.Context) (ginlock.Key, error) { return ginlock.Key{}, nil }

func TestUserWithoutText(t *testing.T) {
	t.Parallel()
	_, err := keyOf(ginlock.ByKey("user"), "/", "/", set(3.5))
	for _, kind := range []error{ginlock.ErrKeyRequired, ginlock.ErrKeyInvalid, ginlock.ErrScopeRequired} {
		if err == nil || errors.Is(err, kind) {
			t.Errorf("error %v, want one that is the server's own", err)
		}
	}
}

func TestKeysOfTheRoute(t *testing.T) {
	t.Parallel()
	hash := func(key ginlock.KeyFunc, route, path string) string {
		k, err := keyOf(key, route, path, nil)
		if err != nil {
			return err.Error()
		}
		return k.Hash()
	}
	id, file, route := ginlock.ByParam("id"), ginlock.ByParam("file"), ginlock.ByRoute()
	if a, b := hash(id, "/cart/:id", "/cart/7"), hash(id, "/cart/:id", "/cart/8"); a == b {
		t.Errorf("two carts, one key %s", a)
	}
	if got := hash(file, "/files/*file", "/files/"); !strings.HasPrefix(got, ginlock.ErrKeyRequired.Error()) {
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
	if got := hash(route, "/orders", "/unknown"); !strings.HasPrefix(got, ginlock.ErrKeyInvalid.Error()) {
		t.Errorf("a path without route: %s", got)
	}
}

// Business code without request names what a request has left behind.
func TestKeysOfValues(t *testing.T) {
	t.Parallel()
	values := func(keys ...func() (ginlock.Key, error)) ginlock.Key {
		t.Helper()
		var made []ginlock.Key
		for _, key := range keys {
			k, err := key()
			if err != nil {
				t.Fatal(err)
			}
			made = append(made, k)
		}
		joined, err := ginlock.Join(made...)
		if err != nil {
			t.Fatal(err)
		}
		return joined
	}
	user := func() (ginlock.Key, error) { return ginlock.PrincipalKey(userID(7)) }
	route := func() (ginlock.Key, error) { return ginlock.RouteKey(http.MethodPost, "/cart/:id") }
	id := func() (ginlock.Key, error) { return ginlock.PathKey("/cart/:id", "id", "9") }
	rest := func() (ginlock.Key, error) { return ginlock.PathKey("/files/*file", "file", "a/b") }
	for name, test := range map[string]struct {
		of          ginlock.KeyFunc
		route, path string
		want        ginlock.Key
	}{
		"route":     {ginlock.ByRoute(), "/cart/:id", "/cart/9", values(route)},
		"path":      {ginlock.ByParam("id"), "/cart/:id", "/cart/9", values(id)},
		"catch-all": {ginlock.ByParam("file"), "/files/*file", "/files/a/b", values(rest)},
		"user":      {ginlock.ByKey("user"), "/", "/", values(user)},
		"joined": {
			ginlock.Keys(ginlock.ByRoute(), ginlock.ByKey("user"), ginlock.ByParam("id")),
			"/cart/:id", "/cart/9", values(route, user, id),
		},
	} {
		got, err := keyOf(test.of, test.route, test.path, set(userID(7)))
		if err != nil || !got.Equal(test.want) {
			t.Errorf("%s: error %v, keys equal %v", name, err, got.Equal(test.want))
		}
	}
	if _, err := ginlock.RouteKey(http.MethodPost, ""); !errors.Is(err, ginlock.ErrNoRoute) {
		t.Errorf("no route: error %v", err)
	}
	if _, err := ginlock.Join(); !errors.Is(err, ginlock.ErrKeyRequired) {
		t.Errorf("no keys: error %v", err)
	}
	if _, err := ginlock.PrincipalKey(userID(0)); !errors.Is(err, ginlock.ErrScopeRequired) {
		t.Errorf("no user: error %v", err)
	}
}

func TestFirstOf(t *testing.T) {
	t.Parallel()
	user, cart, absent := ginlock.ByKey("user"), ginlock.ByHeader("X-Cart"), ginlock.ByHeader("X-Absent")
	own := errors.New("own")
	fails := func(*gin.Context) (ginlock.Key, error) { return ginlock.Key{}, own }
	zero := func(*gin.Context) (ginlock.Key, error) { return ginlock.Key{}, nil }
	for name, test := range map[string]struct {
		fns  []ginlock.KeyFunc
		like ginlock.KeyFunc // the same key
		want error
	}{
		"first":        {[]ginlock.KeyFunc{cart, fails}, cart, nil},
		"no user":      {[]ginlock.KeyFunc{user, cart}, cart, nil},
		"no key":       {[]ginlock.KeyFunc{absent, zero, cart}, cart, nil},
		"none":         {[]ginlock.KeyFunc{user, absent}, nil, ginlock.ErrScopeRequired},
		"zero":         {[]ginlock.KeyFunc{zero, user}, nil, ginlock.ErrKeyRequired},
		"invalid":      {[]ginlock.KeyFunc{ginlock.ByHeader("X-Two"), cart}, nil, ginlock.ErrKeyInvalid},
		"server's own": {[]ginlock.KeyFunc{fails, cart}, nil, own},
	} {
		first := ginlock.FirstOf(test.fns...)
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
	locks := newLocks(t, testkit.Start(t).Client())
	watch := newWatch()
	engine := gin.New()
	engine.Use(ginlock.Exclusive(locks.Mutex, ginlock.ByRoute(), watch.option(), ginlock.WithWait(patience)))
	a := post(t.Context(), serve(t, engine), "ada", "7")
	a.want(t, http.StatusBadRequest)
	if p := a.problem(t); p.Code != "key-invalid" || p.Retryable {
		t.Errorf("problem %+v, want key-invalid", p)
	}
	if c := receive(t, watch.refused, "the hook"); !errors.Is(c, ginlock.ErrKeyInvalid) {
		t.Errorf("the hook was told %v, want ErrKeyInvalid", c)
	}
}

func TestKeyMistakesPanicWhenBuilt(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func(){
		"no keys":     func() { ginlock.Keys() },
		"no first":    func() { ginlock.FirstOf() },
		"nil first":   func() { ginlock.FirstOf(ginlock.ByHeader("X-Cart"), nil) },
		"nil key":     func() { ginlock.Keys(ginlock.ByRoute(), nil) },
		"nil from":    func() { ginlock.From(nil) },
		"nil context": func() { ginlock.ByContext(nil) },
		"nil user":    func() { ginlock.ByPrincipal(nil) },
		"no constant": func() { ginlock.Constant("") },
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
